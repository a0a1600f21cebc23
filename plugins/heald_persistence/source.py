"""A file of a log as readers have it: open, read at places, and counted."""

from __future__ import annotations

import os
from typing import Self

import attrs

from heald_persistence import disk
from heald_persistence.directory import Directory


@attrs.define
class Counts:
    """What reading a log has cost."""

    bytes_read: int = 0
    frames_decoded: int = 0
    tail_decoded: bool = False


class Source:
    """A file that is held open; whatever is renamed over it later is another file.

    One thread at a time uses it.
    """

    def __init__(self, name: str, directory: Directory, counts: Counts) -> None:
        self.name = name
        self.counts = counts
        self._directory = directory
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(name, flags, dir_fd=directory.fd)
        found = os.fstat(self._fd)
        self.size = found.st_size
        self._changed_at = found.st_mtime_ns

    @classmethod
    def if_there(cls, name: str, directory: Directory, counts: Counts) -> Self | None:
        """Open a file, unless there is none."""
        try:
            return cls(name, directory, counts)
        except FileNotFoundError:
            return None

    def at(self, place: int, count: int) -> bytes:
        """Read from a place on; less comes back only where the file ends."""
        parts: list[bytes] = []
        while count > 0 and (part := os.pread(self._fd, count, place)):
            parts.append(part)
            count -= len(part)
            place += len(part)
            self.counts.bytes_read += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def stands(self) -> bool:
        """Say whether its name is still this file's."""
        try:
            found = os.stat(self.name, dir_fd=self._directory.fd)
            return os.path.samestat(os.fstat(self._fd), found)
        except OSError:
            return False

    def was_changed(self) -> bool:
        """Say whether bytes that were there at first have been written over, or cut off."""
        found = os.fstat(self._fd)
        grown = found.st_size > self.size
        return found.st_size < self.size or (found.st_mtime_ns != self._changed_at and not grown)

    def sync(self) -> None:
        """Wait until the file's data is on the medium."""
        disk.sync(self._fd)

    def close(self) -> None:
        """Let the file go."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
