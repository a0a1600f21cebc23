"""The few things that are asked of the disk; everything that can fail there fails here.

Nothing here is called on the event loop but `stat` and `fstat`.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
_AT_ONCE = 8 * 1024 * 1024

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS the only call that reaches the medium."""


def create(path: Path) -> int:
    """Open a file that must not exist yet for appending."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return os.open(path, flags, FILE_MODE)


def append_to(path: Path) -> int:
    """Open a file that exists for appending."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)


def write(fd: int, data: bytes) -> None:
    """Write everything; a short write is a failure, because the disk had no room for the rest."""
    view = memoryview(data)
    while view:
        part = view[:_AT_ONCE]
        written = os.write(fd, part)
        if written != len(part):
            raise OSError(errno.ENOSPC, f"only {written} of {len(part)} bytes were written")
        view = view[written:]


def truncate(fd: int, size: int) -> None:
    """Cut a file's end off."""
    os.ftruncate(fd, size)


def sync(fd: int) -> None:
    """Wait until a file's data is on the medium."""
    if _FULL_SYNC is not None:
        fcntl.fcntl(fd, _FULL_SYNC)
    else:
        os.fdatasync(fd)


def sync_directory(path: Path) -> None:
    """Wait until the names in a directory are on the medium."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def link(old: Path, new: Path) -> None:
    """Give a file another name beside its own, which must be free."""
    os.link(old, new)


def rename(old: Path, new: Path) -> None:
    """Give a file or directory another name at once; a directory never replaces a full one."""
    old.rename(new)


def make_directory(path: Path) -> None:
    """Make a directory that must not exist yet."""
    path.mkdir(DIRECTORY_MODE)


def make_root(path: Path) -> None:
    """Make a directory and what is above it, and see that the new names last."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(DIRECTORY_MODE, exist_ok=True)
        sync_directory(place.parent)


def write_file(path: Path, data: bytes) -> None:
    """Write a new file whole and see that its data lasts."""
    fd = create(path)
    try:
        write(fd, data)
        sync(fd)
    finally:
        os.close(fd)
