"""What a directory holds, a part at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from heald_agent import ToolError
from heald_tools_files.names import shown
from heald_tools_files.paths import trouble

MOST_NAMES = 1_000


def list_directory(
    path: Path, cwd: Path, offset: int, limit: int, check: Callable[[], object]
) -> str:
    """Return names in order from the one at `offset` on, counted from 1; directories with a slash.

    `check` may raise to stop it. Raises `ToolError`.
    """
    try:
        with os.scandir(path) as found:
            entries = sorted(_checked(found, check), key=lambda entry: entry.name)
    except OSError as error:
        raise trouble(error, path, cwd) from error
    if not entries:
        return "[the directory is empty]"
    if offset > len(entries):
        raise ToolError(
            f"{shown(path, cwd)} holds {len(entries):,} names; there is none at {offset:,}"
        )
    last = min(offset - 1 + min(limit, MOST_NAMES), len(entries))
    names = [_named(entry) for entry in entries[offset - 1 : last]]
    if offset > 1 or last < len(entries):
        on = f"; go on with offset={last + 1}" if last < len(entries) else ""
        names.append(f"[names {offset}-{last} of {len(entries):,}{on}]")
    return "\n".join(names)


def _checked(
    entries: Iterator[os.DirEntry[str]], check: Callable[[], object]
) -> Iterator[os.DirEntry[str]]:
    for entry in entries:
        check()
        yield entry


def _named(entry: os.DirEntry[str]) -> str:
    return shown(entry.name, Path(entry.path).parent) + "/" * entry.is_dir()
