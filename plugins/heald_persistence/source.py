"""A file of a log as readers have it: open, read at places, and counted."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Self

import attrs

from heald_persistence import disk


@attrs.define
class Counts:
    """What reading a log has cost."""

    bytes_read: int = 0
    frames_decoded: int = 0
    tail_decoded: bool = False


class Source:
    """A file that is held open; whatever is renamed over it later is another file."""

    def __init__(self, path: Path, counts: Counts) -> None:
        self.name = path.name
        self.counts = counts
        self._lock = threading.Lock()
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        found = os.fstat(self._fd)
        self.size = found.st_size
        self._changed_at = found.st_mtime_ns

    @classmethod
    def if_there(cls, path: Path, counts: Counts) -> Self | None:
        """Open a file, unless there is none."""
        try:
            return cls(path, counts)
        except FileNotFoundError:
            return None

    def at(self, place: int, count: int) -> bytes:
        """Read from a place on; less comes back only where the file ends."""
        parts: list[bytes] = []
        with self._lock:
            while count > 0 and (part := os.pread(self._fd, count, place)):
                parts.append(part)
                count -= len(part)
                place += len(part)
                self.counts.bytes_read += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def is_at(self, path: Path) -> bool:
        """Say whether a path still names this file."""
        try:
            return os.path.samestat(os.fstat(self._fd), path.stat())
        except OSError:
            return False

    def was_changed(self) -> bool:
        """Say whether bytes that were there at first have been written over, or cut off."""
        found = os.fstat(self._fd)
        grown = found.st_size > self.size
        return found.st_size < self.size or (found.st_mtime_ns != self._changed_at and not grown)

    def sync(self) -> None:
        """Wait until the file's data is on the medium."""
        with self._lock:
            disk.sync(self._fd)

    def close(self) -> None:
        """Let the file go, once no thread is reading it."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
