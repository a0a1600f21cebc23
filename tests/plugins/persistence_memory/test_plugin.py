"""The row: whose logs it keeps, and for how long."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from heald import Host, Row
from heald.testing import HostFactory
from heald_persistence import SessionBusy
from heald_query import session_query
from heald_session import SessionId, SessionNotFound, session_store

ONE = SessionId("one")
OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


@pytest.fixture
def open_rows(heald_host: HostFactory) -> OpenHost:
    def opened(name: str | None = None, *more: str) -> AbstractAsyncContextManager[Host]:
        config = {} if name is None else {"name": name}
        rows = [Row(id=row, plugin=row) for row in ("session", *more)]
        return heald_host(rows=[*rows, Row("memory", "persistence-memory", config)])

    return opened


@pytest.fixture
def name() -> str:
    """Return a name that no other test has: logs under it live as long as the process."""
    return uuid.uuid4().hex


async def take_turn(host: Host) -> None:
    session = await host.scope.require(session_store).create(cwd="/loom", id=ONE)
    session.append("turn/start", {"turn": 1})
    session.append("turn/end", {"turn": 1, "outcome": "completed"})
    await session.flush()


async def test_a_session_is_resumed_after_its_host_has_gone(open_rows: OpenHost, name: str) -> None:
    async with open_rows(name) as host:
        await take_turn(host)
    async with open_rows(name) as host:
        session = await host.scope.require(session_store).resume(ONE)
        assert session.end == 2
        assert [event.type async for event in session.read()] == ["turn/start", "turn/end"]


async def test_rows_without_a_name_or_with_another_keep_their_own(
    open_rows: OpenHost, name: str
) -> None:
    async with open_rows(None) as first, open_rows(None) as second, open_rows(name) as third:
        await take_turn(first)
        await take_turn(second)
        await take_turn(third)
    async with open_rows(None) as host:
        with pytest.raises(SessionNotFound):
            await host.scope.require(session_store).resume(ONE)


async def test_of_two_hosts_with_the_same_logs_one_writes_a_session(
    open_rows: OpenHost, name: str
) -> None:
    async with open_rows(name) as first, open_rows(name) as second:
        await take_turn(first)
        with pytest.raises(SessionBusy):
            await second.scope.require(session_store).resume(ONE)


async def test_what_reads_sessions_finds_them_and_no_file_is_made(
    open_rows: OpenHost, name: str, heald_home: Path
) -> None:
    rows = ("projection", "query")
    async with open_rows(name, *rows) as host:
        await take_turn(host)
    async with open_rows(name, *rows) as host:
        query = host.scope.require(session_query)
        (record,) = await query.list_sessions()
        assert (record.id, record.stored, record.problem) == (ONE, True, None)
        async with query.observe_session(ONE, ["sessionStats"]) as observed:
            assert observed.end == 2
            assert observed.projections.values["sessionStats"]
    assert not (heald_home / "sessions").exists()
