"""A walk through a directory tree, in order, that never costs more than its budget."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import attrs

from heald_tools_files.ignores import FILE, IgnoreRules, ground, rules_in

_BETWEEN_CHECKS = 256


@attrs.define
class Budget:
    """How much may be looked at, and what was used up first."""

    entries: int
    seconds: float
    check: Callable[[], object]
    """Called now and then; may raise to stop the walk."""
    spent: str | None = None
    _looked_at: int = 0
    _started: float = attrs.field(factory=time.monotonic)

    def take(self) -> bool:
        """Look at one more entry, if the budget has it."""
        self._looked_at += 1
        if self._looked_at > self.entries:
            self.spend(f"{self.entries:,} files and directories")
        elif self._looked_at % _BETWEEN_CHECKS == 0:
            self.check()
            self.watch()
        return self.spent is None

    def watch(self) -> bool:
        """Say whether there is still time."""
        if time.monotonic() - self._started > self.seconds:
            self.spend(f"{self.seconds:g} seconds")
        return self.spent is None

    def spend(self, what: str) -> None:
        """Say that something was used up; the first is kept."""
        self.spent = self.spent or what


class Entry(NamedTuple):
    """A file that a walk came to."""

    names: tuple[str, ...]
    """From the root of the walk."""
    path: str
    is_link: bool


class _Directory(NamedTuple):
    names: tuple[str, ...]
    rules: IgnoreRules | None
    entries: Iterator[os.DirEntry[str]]


class Walk:
    """Walks the files beneath a directory, ordered by their names, outermost first.

    Left out are `.git` and what `.gitignore` files say. Symbolic links to directories are not
    followed. What cannot be read is counted. When the budget is spent, nothing more is listed.
    """

    def __init__(self, root: Path, budget: Budget) -> None:
        self.root = root
        self.unreadable = 0
        self._budget = budget
        self._ground = ground(root)

    def files(self, wanted: Callable[[tuple[str, ...]], bool]) -> Iterator[Entry]:
        """Yield files, going only into directories that are `wanted`.

        Raises `OSError` if the root itself cannot be listed.
        """
        open_ = [self._list(str(self.root), (), self._ground.rules)]
        while open_:
            here = open_[-1]
            entry = next(here.entries, None)
            if entry is None:
                open_.pop()
                continue
            names = (*here.names, entry.name)
            try:
                is_directory = entry.is_dir(follow_symlinks=False)
                if entry.name == ".git" or self._ignored(
                    names, here.rules, is_directory=is_directory
                ):
                    continue
                if is_directory and wanted(names):
                    open_.append(self._list(entry.path, names, here.rules))
                elif not is_directory and _is_file(entry):
                    yield Entry(names, entry.path, entry.is_symlink())
            except OSError:
                self.unreadable += 1

    def _ignored(
        self, names: tuple[str, ...], rules: IgnoreRules | None, *, is_directory: bool
    ) -> bool:
        if rules is None:
            return False
        return rules.ignore(self._ground.names + names, directory=is_directory)

    def _list(self, path: str, names: tuple[str, ...], above: IgnoreRules | None) -> _Directory:
        found = []
        self._budget.watch()
        with os.scandir(path) as entries:
            for entry in entries:
                if not self._budget.take():
                    break
                found.append(entry)
        rules = above
        if any(entry.name == FILE for entry in found):
            rules = rules_in(Path(path), len(self._ground.names) + len(names), above)
        found.sort(key=lambda entry: entry.name)
        return _Directory(names, rules, iter(found))


def _is_file(entry: os.DirEntry[str]) -> bool:
    if entry.is_symlink():
        return os.path.isfile(entry.path)  # noqa: PTH113 - False, not an error, for a circle
    return entry.is_file(follow_symlinks=False)
