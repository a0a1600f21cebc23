"""Notices when something changes in the directories that were looked into."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections.abc import Collection, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from heald_skills.skill_file import FILE

if TYPE_CHECKING:
    from watchfiles import Change

_SETTLED_MS = 1_000
"""How long nothing may have happened before what was looked at since counts as watched."""


@attrs.frozen
class Wanted:
    """What a list was made from, links followed."""

    roots: frozenset[Path]
    files: frozenset[Path]
    directories: frozenset[Path]
    """Those in which a change of the roots or files shows."""

    @classmethod
    def of(cls, roots: Collection[Path], files: Collection[Path]) -> Wanted:
        """Follow links; what is not there shows in a directory above it when it comes.

        It blocks.
        """
        real = frozenset(map(_real, files))
        near = [place for root in roots for place in (root, root.parent, root.parent.parent)]
        there = (_real(d) for d in (*near, *(f.parent for f in (*files, *real))) if _is_there(d))
        return cls(frozenset(map(_real, roots)), real, frozenset(there))

    def concerns(self, changed: Path) -> bool:
        """Say whether a change of a path may make another list."""
        return (
            changed.name == FILE
            or changed in self.files
            or any(root == changed.parent or root.is_relative_to(changed) for root in self.roots)
        )


class Watch:
    """Says whether what somebody read still stands.

    While `mark` is the same object and not None, nothing has changed in the directories that were
    asked for. It is None whenever that is not certain: then look again.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self.mark: object | None = None
        self._logger = logger
        self._wanted: dict[Path | None, Wanted] = {}
        self._watched: frozenset[Path] = frozenset()
        self._looks = 0
        self._restart = asyncio.Event()

    @contextmanager
    def looking(self) -> Iterator[object | None]:
        """Give the mark that what is read in the block stands under, if it is wanted by its end.

        Until then nobody can say what concerns it, so every change does.
        """
        self._looks += 1
        try:
            yield self.mark
        finally:
            self._looks -= 1

    def want(self, cwd: Path | None, wanted: Wanted) -> None:
        """Watch what a list was made from, instead of what was wanted for the `cwd` before."""
        self._wanted[cwd] = wanted
        if not wanted.directories <= self._watched:
            self._renew()

    def forget(self, cwd: Path | None) -> None:
        """Stop watching what was wanted for a directory; nobody asks for it any more."""
        self._wanted.pop(cwd, None)

    async def run(self) -> None:
        """Watch what is wanted until cancelled; if that is impossible, say so and give up."""
        try:
            while True:
                await self._restart.wait()
                self._restart.clear()
                directories = (wanted.directories for wanted in self._wanted.values())
                self._watched = frozenset[Path]().union(*directories)
                if self._watched:
                    await self._until_something_changes()
        except Exception as error:  # noqa: BLE001 - agents go on without it
            self._logger.warning(
                "skills cannot be watched, so they are looked at each turn: %s", error
            )
        finally:
            self.mark = None

    async def _until_something_changes(self) -> None:
        # Most commands have no skills to watch; and finding a module is work with files.
        watchfiles = await asyncio.to_thread(importlib.import_module, "watchfiles")
        changes = watchfiles.awatch(
            *self._watched,
            watch_filter=self._matters,
            recursive=False,  # a link to somewhere large must not be followed
            stop_event=self._restart,
            rust_timeout=_SETTLED_MS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        try:
            async with aclosing(changes):
                async for changed in changes:
                    if changed:
                        break
                    if self.mark is None:
                        self.mark = object()
        except FileNotFoundError:  # it went away since it was wanted: whoever looks next sees that
            self._watched = frozenset()
            return
        # A directory that was made anew is another one, so everything is watched from the start.
        self._renew()

    def _renew(self) -> None:
        self.mark = None
        self._restart.set()

    def _matters(self, _: Change, changed: str) -> bool:
        wanted = self._wanted.values()
        return self._looks > 0 or any(each.concerns(Path(changed)) for each in wanted)


def _real(path: Path) -> Path:
    return Path(
        os.path.realpath(path)
    )  # which `Path.resolve` does not return for a circle of links


def _is_there(directory: Path) -> bool:
    return os.path.isdir(directory)  # noqa: PTH112 - False, not an error, behind a shut door
