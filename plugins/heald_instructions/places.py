"""Which directories' instructions hold in a session's directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path


def directories(cwd: Path, home: Path | None) -> list[Path]:
    """Return a directory and those above it whose instructions hold in it, the nearest first.

    They end with the root of a repository, with the person's home, or with the file system; and
    below a directory in which anyone may make files, since anyone could leave instructions there.
    """
    found: list[Path] = []
    for place in _upwards(cwd):
        found.append(place)
        if place == home or os.path.lexists(place / ".git"):
            break
    return found


def _upwards(cwd: Path) -> Iterator[Path]:
    yield cwd
    for parent in cwd.parents:
        if _anyone_may_write(parent):
            return
        yield parent


def _anyone_may_write(directory: Path) -> bool:
    try:
        return bool(directory.stat().st_mode & stat.S_IWOTH)
    except OSError:  # what cannot even be looked at is not to be trusted
        return True
