"""The right to write a session: a lock that the kernel keeps for as long as a file is open."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
from datetime import UTC
from pathlib import Path
from typing import Self
from weakref import WeakSet

import attrs
import msgspec

from heald import told_time
from heald_persistence import disk


class Owner(msgspec.Struct, frozen=True):
    """The text beside a lock."""

    pid: int
    host: str
    since: int

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {told_time(self.since, UTC)}"


class Held(Exception):
    """Somebody has the lease."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.owner = owner


@attrs.define(eq=False)
class Lease:
    """A held lock; closing lets it go.

    It is closed and never unlocked: an unlock would act for every process that shares the open
    file. A forked child closes its copy, so it neither holds nor frees what its parent holds.
    """

    path: Path
    _fd: int

    @classmethod
    def take(cls, path: Path, now: int) -> Self:
        """Take the lock of an existing or new file; raise `Held` naming who has it."""
        while True:
            fd = os.open(
                path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, disk.FILE_MODE
            )
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = _owner(fd)
                os.close(fd)
                raise Held(owner) from None
            except BaseException:
                os.close(fd)
                raise
            lease = cls(path, fd)
            if lease.stands():
                break
            lease.close()
        _open.add(lease)
        lease._sign(now)
        return lease

    def stands(self) -> bool:
        """Say whether the path still names the file that is locked."""
        try:
            return os.path.samestat(os.fstat(self._fd), self.path.stat())
        except OSError:
            return False

    def moved_to(self, path: Path) -> None:
        """Follow the file to its new name."""
        self.path = path

    def close(self) -> None:
        """Let the session go."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        _open.discard(self)

    def _sign(self, now: int) -> None:
        text = msgspec.json.encode(Owner(os.getpid(), platform.node(), now)) + b"\n"
        with contextlib.suppress(OSError):  # it is for messages only
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, text, 0)


_open: WeakSet[Lease] = WeakSet()


def _owner(fd: int) -> str:
    try:
        return str(msgspec.json.decode(os.pread(fd, 4096, 0), type=Owner))
    except (OSError, msgspec.MsgspecError, ValueError, OverflowError):
        return "another handle"


def _close_copies() -> None:
    for lease in list(_open):
        lease.close()


os.register_at_fork(after_in_child=_close_copies)
