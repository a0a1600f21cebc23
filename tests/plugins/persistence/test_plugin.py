"""The row: where it keeps sessions, and where it refuses to."""

from __future__ import annotations

import platform
from pathlib import Path
from types import SimpleNamespace

import pytest

from heald import Row, RowsFailed
from heald.testing import HostFactory
from heald_persistence import SessionNotSaved, plugin
from heald_session import NewEvent, SessionId, session_store

SESSION = Row("session", "session")
FIRST = [NewEvent("turn/start", {"turn": 1})]


@pytest.mark.parametrize("root", [None, "elsewhere", "absolute"])
async def test_sessions_are_kept_under_the_home_unless_configured(
    heald_host: HostFactory, heald_home: Path, tmp_path: Path, root: str | None
) -> None:
    places = {None: heald_home / "sessions", "elsewhere": heald_home / "elsewhere"}
    place = places.get(root, tmp_path / "absolute")
    config = {} if root is None else {"root": str(place) if root == "absolute" else root}
    async with heald_host(rows=[SESSION, Row("persistence", "persistence", config)]) as host:
        await host.scope.require(session_store).create(cwd=None, id=SessionId("one"), first=FIRST)
    assert (place / "one" / "tail.jsonl").is_file()


async def test_a_platform_without_the_locks_is_refused_with_a_clear_word(
    heald_host: HostFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "os", SimpleNamespace(name="nt"))
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    with pytest.raises(RowsFailed, match="cannot be kept on Windows"):
        async with heald_host(rows=[SESSION, Row("persistence", "persistence")]):
            pass


async def test_the_queue_is_as_long_as_configured(
    heald_host: HostFactory,
) -> None:
    row = Row("persistence", "persistence", {"queue_bytes": 100})
    async with heald_host(rows=[SESSION, row]) as host:
        store = host.scope.require(session_store)
        session = await store.create(cwd=None, first=FIRST)
        session.append("turn/start", {"turn": 2})
        with pytest.raises(SessionNotSaved, match="waiting"):
            session.append("turn/start", {"turn": 3})
        assert session.end == 2
        await session.flush()
        assert session.append("turn/start", {"turn": 3}).seq == 2
