"""The index of a sealed log: what the zone maps say, in fixed records that one read brings.

It is derived. A reader takes the records that fit the log, from the first on, and finds the other
blocks by walking; the writer puts a new index in the place of one that does not fit. The index of a
long log has hundreds of records: they are checked together and decoded one by one when needed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from heald_persistence import disk
from heald_persistence.frames import ZoneMap

_MAGIC = b"healdix2"
_RECORD = struct.Struct("<QIIIIQqq32s")
_MASK = _RECORD.size - 32
_SUM = struct.Struct("<I")
_SIZE = _RECORD.size + _SUM.size
_HEAD = len(_MAGIC) + 8
_BITS = 256


class Region(NamedTuple):
    """A part of a sealed log: where it is, and which events it should hold."""

    place: int
    stop: int
    first: int
    end: int
    head: int = 0
    """How many bytes come before the frame; 0 if the structure here is not known."""
    mask: int | None = None
    """A bit for each type that occurs, by `bit_of`; None if that is not known."""
    zone: ZoneMap | None = None
    """What the zone map says, if it was read."""


def bit_of(type: str) -> int:  # noqa: A002
    """Return the bit that stands for a type; several may share one."""
    return 1 << _number_of(type)


def _number_of(type: str) -> int:  # noqa: A002
    return zlib.crc32(type.encode("utf-8", "surrogatepass")) % _BITS


def region_of(place: int, head: int, zone: ZoneMap) -> Region:
    """Describe a block that begins at a place."""
    mask = 0
    for name in zone.types:
        mask |= bit_of(name)
    end = zone.first + zone.count
    return Region(place, place + head + zone.stored, zone.first, end, head, mask, zone)


class Index:
    """The records of an index that are right, from the first on."""

    def __init__(self, data: bytes, log_id: str) -> None:
        self._data = data
        self.count = 0
        if data[:_HEAD] == _head(log_id):
            self.count = (len(data) - _HEAD) // _SIZE
        while self.count and not self._holds(self.count):
            self.count -= 1

    def region(self, number: int) -> Region:
        """Decode a record."""
        found = _RECORD.unpack_from(self._data, _HEAD + number * _SIZE)
        begin, head, stored, _, count, seq, _, _, mask = found
        stop = begin + head + stored
        return Region(begin, stop, seq, seq + count, head, int.from_bytes(mask, "little"))

    def regions(self, names: Iterable[str] | None = None) -> list[Region]:
        """Decode all records, or those whose blocks may hold events of some types."""
        if names is None:
            return [self.region(number) for number in range(self.count)]
        data, end = self._data, _HEAD + self.count * _SIZE
        found: set[int] = set()
        for byte, bit in {divmod(_number_of(name), 8) for name in names}:
            marks = data[_HEAD + _MASK + byte : end : _SIZE]
            found.update(number for number, mark in enumerate(marks) if mark >> bit & 1)
        return [self.region(number) for number in sorted(found)]

    def ends_at(self, place: int) -> bool:
        """Say whether the next block would begin there."""
        return self.count > 0 and self.region(self.count - 1).stop == place

    def cut(self, stop: int) -> None:
        """Leave out the blocks that end behind a place."""
        while self.count and self.region(self.count - 1).stop > stop:
            self.count -= 1

    def _holds(self, count: int) -> bool:
        """Say whether so many records are what was written."""
        end = _HEAD + count * _SIZE
        said = self._data[end - _SUM.size : end]
        return said == _SUM.pack(zlib.crc32(self._data[: end - _SUM.size]))


def encode_index(regions: Iterable[Region], log_id: str) -> bytes:
    """Return a whole index, of regions whose zone maps are known."""
    return _with_records(_head(log_id), regions)


def add_to_index(path: Path, regions: Sequence[Region], log_id: str) -> None:
    """Add blocks behind those that an index has, or begin it; failing does no harm."""
    with contextlib.suppress(OSError):
        if regions[0].place == 0:
            write_index(path, encode_index(regions, log_id))
            return
        data = path.read_bytes()
        index = Index(data, log_id)
        if len(data) == _HEAD + index.count * _SIZE and index.ends_at(regions[0].place):
            fd = disk.append_to(path)
            try:
                disk.write(fd, _with_records(data, regions)[len(data) :])
            finally:
                os.close(fd)


def write_index(path: Path, data: bytes) -> None:
    """Put a whole index in place of what is there."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fd = disk.create(new)
    try:
        disk.write(fd, data)
    finally:
        os.close(fd)
    disk.rename(new, path)


def _with_records(data: bytes, regions: Iterable[Region]) -> bytes:
    parts, crc = [data], zlib.crc32(data)
    for region in regions:
        if region.zone is not None:
            record = _record(region, region.zone)
            crc = zlib.crc32(record, crc)
            parts += record, _SUM.pack(crc)
            crc = zlib.crc32(parts[-1], crc)
    return b"".join(parts)


def _record(region: Region, zone: ZoneMap) -> bytes:
    return _RECORD.pack(
        region.place,
        region.head,
        zone.stored,
        zone.raw,
        zone.count,
        zone.first,
        zone.since,
        zone.until,
        (region.mask or 0).to_bytes(_BITS // 8, "little"),
    )


def _head(log_id: str) -> bytes:
    return _MAGIC + hashlib.sha256(log_id.encode()).digest()[:8]
