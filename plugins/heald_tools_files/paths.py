"""Paths as a model writes them and reads them, and what is the matter with one."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from heald_agent import ToolError
from heald_tools_files.lines import sniff
from heald_tools_files.names import shown

_MOST_NAMES = 5_000
"""How many names of a directory are looked at for the one that was meant."""


def locate(cwd: Path, written: str) -> Path:
    """Return the path that was meant: relative ones are in the session's directory."""
    if not written:
        raise ToolError("the path is empty; name a file or a directory")
    if "\0" in written or not _is_text(written):
        raise ToolError(f"{written!r} is no path")
    if written == "~" or written.startswith("~/"):
        written = os.path.expanduser(written)  # noqa: PTH111 - stays as it is without a home
    return cwd / written


def _is_text(written: str) -> bool:
    try:
        written.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def opened(path: Path, cwd: Path) -> Iterator[BinaryIO]:
    """Open a text file for the length of a block.

    Anything else, and whatever goes wrong while reading it, is a `ToolError` that says what it is.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(f"{shown(path, cwd)} {_kind(status.st_mode)}")
        with path.open("rb") as file:
            if sniff(file):
                size = f"{status.st_size:,} bytes"
                raise ToolError(f"{shown(path, cwd)} is a binary file ({size}), not text")
            yield file
    except OSError as error:
        raise trouble(error, path, cwd) from error


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "is a directory; glob lists the files in it"
    return "is not a regular file, but a pipe, a socket or a device"


def trouble(error: OSError, path: Path, cwd: Path) -> ToolError:
    """Say in plain words what the system says about a path."""
    name = shown(path, cwd)
    if isinstance(error, FileNotFoundError):
        return ToolError(f"{name} does not exist{_meant(path, cwd)}")
    if isinstance(error, PermissionError):
        return ToolError(f"{name} cannot be used: permission denied")
    if isinstance(error, NotADirectoryError | FileExistsError):
        return ToolError(f"{name} goes through something that is not a directory")
    if isinstance(error, IsADirectoryError):
        return ToolError(f"{name} is a directory")
    if error.errno == errno.ELOOP:
        return ToolError(f"{name} is a symbolic link that leads in a circle")
    return ToolError(f"{name} cannot be used: {error.strerror or error}")


def _meant(path: Path, cwd: Path) -> str:
    """Name the nearest file in the deepest directory of the path that exists."""
    for parent, missing in _steps(path):
        if os.path.isdir(parent):  # noqa: PTH112 - False, not an error, behind a shut door
            near = _nearest(parent, missing)
            return f"; did you mean {shown(parent / near, cwd)}?" if near else ""
    return ""


def _steps(path: Path) -> list[tuple[Path, str]]:
    return [(place.parent, place.name) for place in (path, *path.parents) if place.name]


def _nearest(directory: Path, name: str) -> str | None:
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in islice(entries, _MOST_NAMES)]
    except OSError:
        return None
    same = [known for known in names if known.casefold() == name.casefold()]
    return next(iter(same or get_close_matches(name, sorted(names), n=1)), None)
