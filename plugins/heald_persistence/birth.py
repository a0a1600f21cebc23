"""A session's first bytes: built out of sight, and given their name all together or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence

import attrs

from heald_persistence import disk
from heald_persistence.blobs import BlobWriter, Payload
from heald_persistence.index import Region, add_to_index
from heald_persistence.inheritance import Inheritance
from heald_persistence.layout import Place, encode_facts
from heald_persistence.lease import Held, Lease
from heald_persistence.lines import TailHeader, line_of, places_of
from heald_persistence.sealing import FRAME_BYTES, blocks_of, regions_of
from heald_persistence.sweeping import Sweeper
from heald_persistence.tail import Tail
from heald_session import Header, LogOffset, SessionIdTaken

OCCUPIED = frozenset((errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR))
"""What a rename onto a name that is taken fails with."""


def occupied(place: Place) -> bool:
    """Say whether anything has the name of a session's directory."""
    return os.path.lexists(place.path)


@attrs.frozen
class Unborn:
    """A session that was created and has logged nothing yet."""

    header: Header
    cut: LogOffset
    place: Place
    sweeper: Sweeper
    source: Place | None = None
    """The session that it was forked from."""
    aim: int = FRAME_BYTES
    """What a frame should hold."""
    inheritance: Inheritance | None = None
    """What it begins with, if that is not among its first events."""

    def bear(self, events: bytes, payloads: Sequence[Payload], now: int) -> tuple[Lease, Tail]:
        """Store the session with its first events, which are not settled before the root is synced.

        Blocks. Raises `SessionIdTaken` or `OSError`; then nothing is left.
        """
        disk.make_root(self.place.path.parent)
        self.sweeper.sweep(now)
        making, lease = self._begin(now)
        try:
            tail = self._fill(making, events, payloads)
            self._name(making, tail)
        except BaseException:
            lease.close()
            shutil.rmtree(making.path, ignore_errors=True)
            raise
        lease.moved_to(self.place.lock)
        return lease, tail

    def _begin(self, now: int) -> tuple[Place, Lease]:
        """Make a directory that is ours alone: a sweeper may be quicker than our lock."""
        while True:
            making = self.place.in_the_making()
            disk.make_directory(making.path)
            try:
                return making, Lease.take(making.lock, now)
            except (Held, FileNotFoundError):
                continue
            except BaseException:
                shutil.rmtree(making.path, ignore_errors=True)
                raise

    def _fill(self, making: Place, events: bytes, payloads: Sequence[Payload]) -> Tail:
        blobs = BlobWriter(making.path, None if self.source is None else self.source.path)
        blobs.keep(payloads)
        lines = [events[start:stop] for start, stop in places_of(events)]
        regions: list[Region] = []
        if self.inheritance is not None:
            self.inheritance.keep_blobs(blobs)
            lines = self.inheritance.lines + lines
            if regions := [*self.inheritance.regions]:
                self.inheritance.copy_frames(making.log)
        header, more = self._seal(making, lines, regions)
        first = line_of(header)
        disk.write_file(making.facts, encode_facts(self.header, self.cut))
        disk.write_file(making.tail, first + more)
        disk.sync_directory(making.path)
        return Tail(self.place.tail, disk.append_to(making.tail), header, first, more)

    def _seal(
        self, making: Place, lines: Sequence[bytes], regions: list[Region]
    ) -> tuple[TailHeader, bytes]:
        """Put lines in frames behind those that are there; return the header and the rest."""
        reached = regions[-1].end if regions else 0
        blocks, rest = blocks_of(lines, self.aim, small=self.cut + 1 - reached)
        regions += regions_of(blocks, regions[-1].stop if regions else 0)
        if blocks:
            fd = disk.append_to(making.log) if making.log.exists() else disk.create(making.log)
            try:
                disk.write(fd, b"".join(block.stored for block in blocks))
                disk.sync(fd)
            finally:
                os.close(fd)
        if not regions:
            return TailHeader(self.header.log_id), b"".join(rest)
        add_to_index(making.index, regions, self.header.log_id)
        return TailHeader(self.header.log_id, regions[-1].end, regions[-1].stop), b"".join(rest)

    def close(self) -> None:
        """Let go what it was to inherit."""
        if self.inheritance is not None:
            self.inheritance.close()

    def _name(self, making: Place, tail: Tail) -> None:
        try:
            if occupied(self.place):  # a rename would take an empty directory's place
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            disk.rename(making.path, self.place.path)
        except OSError as error:
            tail.close()
            if error.errno in OCCUPIED:
                raise SessionIdTaken(self.header.id) from error
            raise
