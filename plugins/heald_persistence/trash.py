"""Where deleted sessions wait: whole directories, moved out of the list's sight and back.

An entry is ``NAME.TIME.NONCE``: the directory's name among the sessions, when it was deleted
(milliseconds since the epoch, and later than every other entry whatever the clock says), and
random hexadecimal digits. Nothing is ever removed from here but by people.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import attrs

from heald_persistence import disk

_ENTRY = re.compile(r"(?P<name>~?[A-Za-z0-9_-]+)\.(?P<time>[0-9]{1,20})\.[0-9a-f]{8}")


@attrs.frozen(order=True)
class Trashed:
    """One entry; a later one is greater."""

    time: int
    path: Path

    @property
    def name(self) -> str:
        """The name that its directory had."""
        return self.path.name.partition(".")[0]


@attrs.frozen
class Trash:
    """A directory of deleted sessions, on the file system of the others; every method blocks."""

    root: Path

    def entries(self) -> list[Trashed]:
        """Return what is here, latest first; raises `OSError`."""
        return sorted(self._entries(), reverse=True)

    def take(self, path: Path, now: int) -> None:
        """Move a session's directory here; the caller has its lease. Raises `OSError`."""
        disk.make_root(self.root)
        time = max([now, *(entry.time + 1 for entry in self.entries()[:1])])
        disk.rename(path, self.root / f"{path.name}.{time}.{secrets.token_hex(4)}")
        self._sync_with(path)

    def give_back(self, entry: Trashed, path: Path) -> None:
        """Move an entry back to where it was, which nothing occupies. Raises `OSError`."""
        disk.rename(entry.path, path)
        self._sync_with(path)

    def _sync_with(self, path: Path) -> None:
        """See that a move lasts; after a power cut the directory has one of its names."""
        disk.sync_directory(self.root)
        disk.sync_directory(path.parent)

    def _entries(self) -> Iterator[Trashed]:
        try:
            found = list(os.scandir(self.root))
        except FileNotFoundError:
            return
        for entry in found:
            match = _ENTRY.fullmatch(entry.name)
            if match is not None and entry.is_dir(follow_symlinks=False):
                yield Trashed(int(match["time"]), Path(entry.path))
