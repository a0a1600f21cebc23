"""Hosts that keep sessions, and logs in the form of the reference system."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import attrs
import pytest
import zstandard

from heald import Host, Row
from heald.testing import HostFactory
from heald_persistence import session_persistence
from heald_query import session_query
from heald_session import Event, Header, SessionId
from heald_transfer.importing import Imported, import_file

ROWS = [
    Row(id=name, plugin=name)
    for name in ("session", "persistence", "projection", "projection-cache", "query")
]


@attrs.frozen
class Kept:
    """A host that keeps sessions, as these tests use it."""

    host: Host

    async def bring(self, path: Path) -> list[Imported]:
        """Import a file."""
        storage = self.host.scope.require(session_persistence)
        return [one async for one in import_file(storage, path)]

    async def stored(self, id: str) -> tuple[Header, int, list[Event]]:  # noqa: A002
        """Return all of a stored session."""
        storage = self.host.scope.require(session_persistence)
        async with await storage.read(SessionId(id)) as log:
            events = [event async for batch in log.batches() for event in batch]
            return log.header, log.cut, events

    async def names(self) -> list[str]:
        """Return what is stored."""
        return [one.name for one in await self.host.scope.require(session_persistence).list()]

    async def fold(self, id: str, *keys: str) -> Mapping[str, Any]:  # noqa: A002
        """Return projections of a stored session, folded from its log."""
        query = self.host.scope.require(session_query)
        async with query.observe_session(SessionId(id), keys) as seen:
            return seen.projections.values


@pytest.fixture
def keeping(heald_host: HostFactory) -> Callable[..., AbstractAsyncContextManager[Host]]:
    """Return a function that opens a host with sessions, on a home of the caller's choice."""

    def open_host(home: Path | None = None) -> AbstractAsyncContextManager[Host]:
        return heald_host(rows=ROWS, home=home)

    return open_host


@pytest.fixture
def kept() -> Callable[[Host], Kept]:
    """Return what makes the short ways to a host's sessions."""
    return Kept


@pytest.fixture
def reference_log(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a log as the reference system does: a frame for each write."""

    def write(
        *writes: Sequence[Mapping[str, Any]], name: str = "a", torn: int = 0, **header: Any
    ) -> Path:
        first = {
            "type": "session",
            "version": 0,
            "id": name,
            "createdAt": 1_700_000_000_000,
            "cwd": "/loom",
            "delegationDepth": 0,
            **header,
        }
        data = b"".join(map(_frame, [[first], *writes]))
        path = tmp_path / f"{name}.jsonl.zstd"
        path.write_bytes(data[: len(data) - torn])
        return path

    return write


def _frame(lines: Iterable[Mapping[str, Any]]) -> bytes:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return zstandard.ZstdCompressor().compress(text.encode())
