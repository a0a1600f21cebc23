"""A session's first bytes: built out of sight, and given their name all together or not at all."""

from __future__ import annotations

import errno
import os
import shutil

import attrs

from heald_persistence import disk
from heald_persistence.layout import Place, encode_facts
from heald_persistence.lease import Lease
from heald_persistence.lines import TailHeader, line_of
from heald_persistence.tail import Tail
from heald_session import Header, LogOffset, SessionIdTaken

_OCCUPIED = frozenset((errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR))


def occupied(place: Place) -> bool:
    """Say whether anything has the name of a session's directory."""
    return os.path.lexists(place.path)


@attrs.frozen
class Unborn:
    """A session that was created and has logged nothing yet."""

    header: Header
    cut: LogOffset
    place: Place

    def bear(self, events: bytes, now: int) -> tuple[Lease, Tail]:
        """Store the session with its first events, which are not settled before the root is synced.

        Blocks. Raises `SessionIdTaken` or `OSError`; then nothing is left.
        """
        disk.make_root(self.place.path.parent)
        making = self.place.in_the_making()
        disk.make_directory(making.path)
        lease: Lease | None = None
        try:
            lease = Lease.take(making.lock, now)
            tail = self._fill(making, events)
            self._name(making, tail)
        except BaseException:
            if lease is not None:
                lease.close()
            shutil.rmtree(making.path, ignore_errors=True)
            raise
        lease.moved_to(self.place.lock)
        return lease, tail

    def _fill(self, making: Place, events: bytes) -> Tail:
        first = line_of(TailHeader(self.header.log_id))
        disk.write_file(making.facts, encode_facts(self.header, self.cut))
        disk.write_file(making.tail, first + events)
        disk.sync_directory(making.path)
        return Tail(self.place.tail, disk.append_to(making.tail), first, events)

    def _name(self, making: Place, tail: Tail) -> None:
        try:
            if occupied(self.place):  # a rename would take an empty directory's place
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            disk.rename(making.path, self.place.path)
        except OSError as error:
            tail.close()
            if error.errno in _OCCUPIED:
                raise SessionIdTaken(self.header.id) from error
            raise
