"""Files of instructions, read no further than a prompt has room for."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import attrs

_BOM = b"\xef\xbb\xbf"


@attrs.frozen
class InstructionFile:
    """A file as it was read, or why it was not."""

    path: Path
    size: int = 0
    content: bytes = attrs.field(default=b"", repr=False)
    problem: str | None = None

    @property
    def digest(self) -> str | None:
        """Of what was read; None if nothing was."""
        return None if self.problem is not None else sha256(self.content).hexdigest()

    @property
    def truncated(self) -> bool:
        """Whether there is more than was read."""
        return self.problem is None and len(self.content) < self.size

    @property
    def text(self) -> str:
        """What it says, with a note where it is cut; bytes that are no text are replaced."""
        text = self.content.removeprefix(_BOM).decode("utf-8", "replace").strip()
        if self.problem is not None:
            return f"[it cannot be read: {self.problem}]"
        if self.truncated:
            return f"{text}\n[cut here: the file has {self.size:,} bytes]"
        return text


def read_files(
    directories: Iterable[Path], names: Iterable[str], *, each: int, together: int
) -> list[InstructionFile]:
    """Read the instructions in directories, the nearest first, which get the room there is.

    Of files that say the same only the nearest is kept, and empty ones are left out.
    """
    found: list[InstructionFile] = []
    said: set[bytes] = set()
    for path in _paths(directories, names):
        room = min(each, together - sum(len(file.content) for file in found))
        file = _read(path, room)
        if file is None or file.content in said or not file.text:
            continue
        said |= {file.content} if file.content else set()
        found.append(file)
    return found


def _paths(directories: Iterable[Path], names: Iterable[str]) -> Iterator[Path]:
    named = tuple(names)
    return (directory / name for directory in directories for name in named)


def _read(path: Path, room: int) -> InstructionFile | None:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return InstructionFile(path, problem="it is no regular file")
        with path.open("rb") as file:
            content = file.read(room)
            return InstructionFile(path, os.fstat(file.fileno()).st_size, content)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return InstructionFile(path, problem=error.strerror or str(error))
