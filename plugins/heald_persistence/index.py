"""The index of a sealed log: what the zone maps say, in fixed records that one read brings.

It is derived. A reader takes the records that fit the log, from the first on, and finds the other
blocks by walking; the writer puts a new index in the place of one that does not fit.
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

_MAGIC = b"healdix1"
_RECORD = struct.Struct("<QIIIIQqq32s")
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
    return 1 << zlib.crc32(type.encode("utf-8", "surrogatepass")) % _BITS


def region_of(place: int, head: int, zone: ZoneMap) -> Region:
    """Describe a block that begins at a place."""
    mask = 0
    for name in zone.types:
        mask |= bit_of(name)
    end = zone.first + zone.count
    return Region(place, place + head + zone.stored, zone.first, end, head, mask, zone)


def read_index(data: bytes, log_id: str) -> list[Region]:
    """Return the regions of an index up to its first record that is wrong."""
    regions: list[Region] = []
    if data[:_HEAD] != _head(log_id):
        return regions
    place = first = 0
    for start in range(_HEAD, len(data) - _SIZE + 1, _SIZE):
        record = data[start : start + _RECORD.size]
        if data[start + _RECORD.size : start + _SIZE] != _SUM.pack(zlib.crc32(record)):
            break
        begin, head, stored, _, count, seq, _, _, mask = _RECORD.unpack(record)
        if (begin, seq) != (place, first):
            break
        place, first = begin + head + stored, seq + count
        regions.append(Region(begin, place, seq, first, head, int.from_bytes(mask, "little")))
    return regions


def encode_index(regions: Iterable[Region], log_id: str) -> bytes:
    """Return a whole index."""
    return _head(log_id) + encode_records(regions)


def encode_records(regions: Iterable[Region]) -> bytes:
    """Return the records of regions whose zone maps are known."""
    return b"".join(_record(region, region.zone) for region in regions if region.zone is not None)


def add_to_index(path: Path, regions: Sequence[Region], log_id: str) -> None:
    """Add blocks to an index, or begin it if they are the first; failing does no harm."""
    data = encode_records(regions)
    with contextlib.suppress(OSError):
        if regions[0].place == 0:
            write_index(path, _head(log_id) + data)
            return
        fd = disk.append_to(path)
        try:
            disk.write(fd, data)
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


def _record(region: Region, zone: ZoneMap) -> bytes:
    record = _RECORD.pack(
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
    return record + _SUM.pack(zlib.crc32(record))


def _head(log_id: str) -> bytes:
    return _MAGIC + hashlib.sha256(log_id.encode()).digest()[:8]
