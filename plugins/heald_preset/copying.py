"""Copies a directory whole, as its owner's alone, with what its links lead to in their place."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heald_preset.problems import PresetProblem

MAX_ENTRIES = 10_000
"""Far above what a preset carries; links to and fro could make a copy as large as one likes."""


def copy_tree(source: Path, target: Path) -> None:
    """Copy a directory into one that is there and empty.

    Directories become 0700 and files 0600, with the owner's right to run them if they had it.
    Raises `PresetProblem` for what cannot be read, links in a circle, what is neither file nor
    directory, and too much; `OSError` for what cannot be written. What was copied so far stays.
    """
    for n, (found, place) in enumerate(_entries(source, target, (_identity(target),))):
        if n == MAX_ENTRIES:
            raise PresetProblem(f"{source}: there are more than {MAX_ENTRIES} files in it")
        if found.is_dir():
            place.mkdir(mode=0o700)
        else:
            _copy_file(found, place)


def _entries(
    source: Path, target: Path, above: tuple[tuple[int, int], ...]
) -> Iterator[tuple[Path, Path]]:
    """Yield what is in a directory and below and where it goes, a directory before its content."""
    with _reading(source):
        here = _identity(source)
        names = sorted(path.name for path in source.iterdir())
    if here in above:
        raise PresetProblem(f"{source}: a link leads back to a directory that it is in")
    for name in names:
        yield source / name, target / name
        if (source / name).is_dir():
            yield from _entries(source / name, target / name, (*above, here))


def _identity(directory: Path) -> tuple[int, int]:
    status = directory.stat()
    return status.st_dev, status.st_ino


def _copy_file(source: Path, target: Path) -> None:
    with _reading(source):  # without blocking, since the other end of a pipe may never come
        fd = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as old:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            raise PresetProblem(f"{source}: is neither a file nor a directory")
        rights = 0o600 | (mode & stat.S_IXUSR)
        with open(target, "xb", opener=lambda name, flags: os.open(name, flags, rights)) as new:
            shutil.copyfileobj(old, new)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PresetProblem(f"{path}: cannot be read: {error.strerror}") from error
