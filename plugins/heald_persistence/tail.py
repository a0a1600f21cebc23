"""The file of a session's newest events, as its one writer has it."""

from __future__ import annotations

import contextlib
import os
import secrets
import zlib
from pathlib import Path

from heald_persistence import disk
from heald_persistence.lines import TailHeader, line_of, places_of


class Changed(Exception):
    """The file is not what its writer left."""


class Tail:
    """A tail that is open for writing, and how far it is known to be good.

    Every method blocks but `fault`. What was written counts once it is settled. After a failed
    write or sync only `rewrite` may follow: what the failed descriptor would say next is worth
    nothing.
    """

    def __init__(
        self, path: Path, fd: int, header: TailHeader, good: bytes, more: bytes = b""
    ) -> None:
        self.path = path
        self.header = header
        self._fd = fd
        self._sure = True
        """Whether the name of the open file is known to last."""
        self._good = (len(good), zlib.crc32(good))
        """Length and checksum of what is settled, to know it again."""
        self._left = (len(good) + len(more), zlib.crc32(more, self._good[1]))
        """Length and checksum of the whole file as it was left."""

    @classmethod
    def open(cls, path: Path, header: TailHeader, good: bytes, more: bytes = b"") -> Tail:
        """Open a file whose content was read: what is good of it, and what follows that."""
        return cls(path, disk.append_to(path), header, good, more)

    @property
    def size(self) -> int:
        """How many bytes are settled, the header's with them."""
        return self._good[0]

    def fault(self) -> str | None:
        """Say how the file differs from what was left, if it does."""
        try:
            found, ours = self.path.stat(), os.fstat(self._fd)
        except FileNotFoundError:
            return "it was removed"
        except OSError as error:
            return str(error.strerror)
        if not os.path.samestat(found, ours):
            return "it was replaced"
        if found.st_size != self._left[0]:
            return f"it has {found.st_size} bytes instead of {self._left[0]}"
        return None

    def check(self) -> None:
        """Raise `Changed` if somebody else touched the file."""
        if (fault := self.fault()) is not None:
            raise Changed(fault)

    def append(self, data: bytes) -> None:
        """Write at the end and sync; raises `Changed`, and then nothing was written."""
        if not self._sure:
            self.rewrite(data)
            return
        self.check()
        try:
            disk.write(self._fd, data)
            disk.sync(self._fd)
        except BaseException:
            self._left = (os.fstat(self._fd).st_size, 0)
            raise
        self._left = self._followed_by(data)

    def rewrite(self, data: bytes) -> None:
        """Put what is settled and `data` in a new file in place of the old."""
        self.check()
        good = self._read_good()
        self._replace(good, data)
        self._left = self._followed_by(data)
        self._make_sure()

    def lines(self) -> list[bytes]:
        """Read back the settled events; raises `OSError` if they are not what was written."""
        data = self._read_good()
        begin = data.index(b"\n") + 1
        return [data[start:stop] for start, stop in places_of(data, begin)]

    def begin_anew(self, header: TailHeader, lines: bytes) -> None:
        """Put a tail with another header and the rest of the lines in place of a settled one."""
        self.check()
        first = line_of(header)
        self._replace(first, lines)
        self.header = header
        self._good = self._left = (len(first + lines), zlib.crc32(first + lines))
        self._make_sure()

    def _replace(self, good: bytes, more: bytes) -> None:
        """Put a new file in place of the old; until that has its name, nothing has changed."""
        new = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        fd = disk.create(new)
        try:
            disk.write(fd, good)
            disk.write(fd, more)
            disk.sync(fd)
            disk.rename(new, self.path)
        except BaseException:
            os.close(fd)
            with contextlib.suppress(OSError):
                new.unlink()
            raise
        self.close()
        self._fd = fd
        self._sure = False

    def _make_sure(self) -> None:
        disk.sync_directory(self.path.parent)
        self._sure = True

    def settle(self) -> None:
        """Count everything that was written as good."""
        self._good = self._left

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _followed_by(self, data: bytes) -> tuple[int, int]:
        length, crc = self._good
        return length + len(data), zlib.crc32(data, crc)

    def _read_good(self) -> bytes:
        length, crc = self._good
        with self.path.open("rb") as file:
            good = file.read(length)
        if zlib.crc32(good) != crc:
            raise OSError("what was saved earlier does not read back as it was written")
        return good
