"""Removes what makers of sessions that died have left under the root."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

import attrs

from heald_persistence.layout import Place
from heald_persistence.lease import Held, Lease

_MAKING = re.compile(r"\.~?[A-Za-z0-9_-]+\.[0-9a-f]{8}")
_OURS = frozenset(("session.json", "tail.jsonl", "log.jsonl.zst", "log.idx", "lock", "blobs"))


@attrs.define
class Sweeper:
    """Sweeps a root once, before the first session of this process is made there."""

    root: Path
    _swept: bool = False

    def sweep(self, now: int) -> None:
        """Remove every directory in the making whose lock is free; blocks."""
        if self._swept:
            return
        self._swept = True
        for path in self.root.iterdir():
            if _MAKING.fullmatch(path.name) and not path.is_symlink():
                with contextlib.suppress(OSError, Held):
                    _sweep(Place(path), now)


def _sweep(making: Place, now: int) -> None:
    """Remove a directory, if nobody is making it and there is nothing in it but what a maker puts.

    A maker holds the lock from the start. It is removed last: a maker that comes between gets
    another lock, sees that it has lost this one, and goes elsewhere.
    """
    if any(not _is_ours(path.name) for path in making.path.iterdir()):
        return
    lease = Lease.take(making.lock, now)
    try:
        for path in making.path.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path != making.lock:
                path.unlink()
        making.lock.unlink()
        making.path.rmdir()
    finally:
        lease.close()


def _is_ours(name: str) -> bool:
    return name in _OURS or name.startswith(".log.idx.")
