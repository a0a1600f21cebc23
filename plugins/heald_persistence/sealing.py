"""The sealed log as its one writer has it: whole frames are added at its end, and never changed."""

from __future__ import annotations

import os
from collections.abc import Sequence

import attrs

from heald_persistence import disk
from heald_persistence.contracts import Damage
from heald_persistence.directory import Directory
from heald_persistence.frames import FRAME_LIMIT, Block, block_of
from heald_persistence.index import Region, add_to_index, encode_index, region_of, write_index
from heald_persistence.layout import Place
from heald_persistence.lines import TailHeader
from heald_persistence.sealed import Sealed
from heald_persistence.source import Counts, Source
from heald_persistence.tail import Changed, Tail
from heald_session import LogOffset

FRAME_BYTES = 256 * 1024
"""What a frame aims to hold, decompressed."""
LEAST_PART = 4
"""A quarter of that is worth a frame when a session is closed; less stays in the tail.

Frames up to a session's own first events aim at no more either: who lists sessions reads those.
"""


def blocks_of(
    lines: Sequence[bytes], aim: int, least: int | None = None, small: int = 0
) -> tuple[list[Block], Sequence[bytes]]:
    """Compress lines into blocks that hold what is aimed at, and return the rest with them.

    A rest of `least` is worth a block as well; blocks that begin with one of the first `small`
    lines are small. Raises `BadLine`.
    """
    groups, rest = _divide(lines, aim, aim if least is None else least, small)
    if any(sum(map(len, group)) > FRAME_LIMIT for group in groups):
        return [], lines  # no reader would decompress it; lines in a tail may be of any length
    return [block_of(group) for group in groups], rest


@attrs.frozen
class SealedLog:
    """Seals lines of one session; every method blocks, and is called with its lease held."""

    place: Place
    log_id: str
    inherited: LogOffset
    """How many events are not the session's own."""
    aim: int = FRAME_BYTES

    def seal(self, tail: Tail, least: int | None = None) -> None:
        """Move lines from a settled tail into frames, as far as they fill some.

        The events are durable before and after, and at every step between. Raises `OSError`,
        `BadLine`, or `Changed` if somebody else touched the files.
        """
        tail.check()
        header = tail.header
        small = self.inherited + 1 - header.base
        blocks, rest = blocks_of(tail.lines(), self.aim, least, small)
        if not blocks:
            return
        regions = regions_of(blocks, header.sealed)
        self._add(blocks, header.sealed)
        new = TailHeader(self.log_id, regions[-1].end, regions[-1].stop)
        tail.begin_anew(new, b"".join(rest))
        add_to_index(self.place.index, regions, self.log_id)

    def take_over(self, header: TailHeader) -> Damage | None:
        """Cut what was never sealed, mend the index, and say what is wrong, if anything is."""
        for left in self.place.leavings():
            left.unlink(missing_ok=True)
        if header.sealed == 0:
            self.place.log.unlink(missing_ok=True)
            return None
        with Directory(self.place.path) as directory:
            source = Source.if_there(self.place.log.name, directory, Counts())
            if source is None:
                return _cut_short(header, 0)
            try:
                damage = self._damage_in(source, header)
            finally:
                source.close()
        if damage is None:
            self.cut(header.sealed)
        return damage

    def _damage_in(self, source: Source, header: TailHeader) -> Damage | None:
        """Say what is wrong, or mend the index."""
        if source.size < header.sealed:
            return _cut_short(header, source.size)
        sealed = Sealed(source, header.sealed, header.base)
        damage = next(sealed.check(), None)
        if damage is None:
            self._mend_index(sealed)
        return damage

    def cut(self, sealed: int) -> None:
        """Cut what follows the sealed bytes: the tail still has it."""
        if not self.place.log.exists():
            return
        fd = disk.append_to(self.place.log)
        try:
            self._cut_open(fd, sealed)
        finally:
            os.close(fd)

    def _add(self, blocks: Sequence[Block], sealed: int) -> None:
        is_new = sealed == 0 and not self.place.log.exists()
        if sealed and not self.place.log.exists():
            raise Changed("log.jsonl.zst was removed")
        fd = disk.create(self.place.log) if is_new else disk.append_to(self.place.log)
        try:
            self._cut_open(fd, sealed)
            disk.write(fd, b"".join(block.stored for block in blocks))
            disk.sync(fd)
        finally:
            os.close(fd)
        if sealed == 0:  # or a writer that died had made it and its name may not last
            disk.sync_directory(self.place.path)

    def _cut_open(self, fd: int, sealed: int) -> None:
        size = os.fstat(fd).st_size
        if size < sealed:
            raise Changed(f"log.jsonl.zst has {size} bytes instead of {sealed}")
        if size > sealed:
            disk.truncate(fd, sealed)

    def _mend_index(self, sealed: Sealed) -> None:
        data = encode_index(sealed.regions, self.log_id)
        try:
            if not self.place.index.exists() or self.place.index.read_bytes() != data:
                write_index(self.place.index, data)
        except OSError:
            return  # it is derived: readers walk the log without it


def _divide(
    lines: Sequence[bytes], aim: int, least: int, small: int
) -> tuple[list[Sequence[bytes]], Sequence[bytes]]:
    groups: list[Sequence[bytes]] = []
    begin = size = 0
    for number, line in enumerate(lines):
        size += len(line)
        if size >= (aim // LEAST_PART if begin < small else aim):
            groups.append(lines[begin : number + 1])
            begin, size = number + 1, 0
    if begin < len(lines) and size >= least:
        groups.append(lines[begin:])
        begin = len(lines)
    return groups, lines[begin:]


def regions_of(blocks: Sequence[Block], place: int) -> list[Region]:
    """Describe blocks that are stored one after the other."""
    regions = []
    for block in blocks:
        regions.append(region_of(place, len(block.head), block.zone))
        place = regions[-1].stop
    return regions


def _cut_short(header: TailHeader, size: int) -> Damage:
    return Damage(
        kind="missing",
        file="log.jsonl.zst",
        offset=size,
        first=LogOffset(0),
        count=None,
        types=None,
        reason=f"the log has {size} bytes instead of {header.sealed}",
    )
