"""The row: whose logs it keeps, and for how long."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from heald import Host, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_doctor import checks
from heald_persistence import SessionBusy, session_deleted, session_persistence
from heald_query import session_query
from heald_session import APPEND, SessionId, SessionNotFound, session_store

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


READERS = ("projection", "projection-cache", "query", "doctor")


async def said(host: Host, id_: SessionId, text: str) -> None:
    """Take a turn with a prompt, and let the session go."""
    store = host.scope.require(session_store)
    session = await store.create(cwd="/loom", id=id_)
    session.append("turn/start", {"turn": 1})
    session.append("user/message", {"id": "m", "text": text}, surface=APPEND)
    session.append("turn/end", {"turn": 1, "outcome": "completed"})
    await store.dispose(session)


async def looked_at_and_made_anew(host: Host) -> None:
    """Do what `heald doctor` does with what is derived, and find nothing wrong."""
    offered = {found.value.name: found.value for found in host.scope.collect(checks)}
    told: list[tuple[int, int | None]] = []
    for name in ("checkpoints", "corpus", "search-index"):
        check = offered[name]
        assert not list(await check.run(lambda done, total=None: told.append((done, total))))
        assert check.rebuild is not None
        await check.rebuild(lambda done, total=None: told.append((done, total)))


async def test_nothing_that_was_said_is_written_to_the_disk(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows(None, *READERS) as host:
        await said(host, ONE, "copper wire")
        query = host.scope.require(session_query)
        (record,) = await query.list_sessions(keys=["title"])
        assert record.projections is None
        async with query.observe_session(ONE, ["title"]) as observed:
            assert observed.projections.values["title"] == {"text": "copper wire"}
        assert [hit.session for hit in (await query.search("copper")).hits] == [ONE]
        await looked_at_and_made_anew(host)
        assert [hit.session for hit in (await query.search("copper")).hits] == [ONE]
        await host.scope.require(session_persistence).delete(ONE)
        assert (await query.search("copper")).hits == ()
    assert not (heald_home / "cache").exists()


async def test_what_is_derived_from_the_logs_on_the_disk_of_the_same_home_is_left_alone(
    open_rows: OpenHost, heald_host: HostFactory, heald_home: Path
) -> None:
    rows = [Row(name, name) for name in ("session", "persistence", *READERS)]
    async with heald_host(rows=rows) as host:
        await said(host, ONE, "copper wire")
        query = host.scope.require(session_query)
        await query.search("copper")
        while not list((heald_home / "cache").glob("corpus-*.sqlite")):
            await query.list_sessions()  # what has just been made is remembered a little later
            await asyncio.sleep(0.01)
    before = contents(heald_home / "cache")
    assert {name.partition("-")[0] for name in before} == {"checkpoints", "corpus", "search"}
    async with open_rows(None, *READERS) as host:
        await said(host, SessionId("two"), "bronze wire")
        query = host.scope.require(session_query)
        assert [record.id for record in await query.list_sessions(keys=["title"])] == ["two"]
        assert (await query.search("wire")).total == 1
        await looked_at_and_made_anew(host)
        await host.scope.require(session_persistence).delete(SessionId("two"))
    assert contents(heald_home / "cache") == before


def contents(cache: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in cache.glob("*.sqlite")}


async def test_what_is_deleted_is_told(open_rows: OpenHost, install: Callable[..., None]) -> None:
    heard: list[SessionId] = []

    class Hearing(Plugin[NoConfig]):
        @implements(session_deleted)
        async def hear(self, id: SessionId) -> None:  # noqa: A002
            heard.append(id)

    install(hearing=Hearing)
    async with open_rows(None, "hearing") as host:
        await said(host, ONE, "copper wire")
        await host.scope.require(session_persistence).delete(ONE)
    assert heard == [ONE]
