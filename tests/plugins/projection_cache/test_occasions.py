"""When states are kept while a session goes on, and that a failure is made good."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from heald import Discovery, Host, NoConfig, Plugin, host_closing, implements
from heald_projection import CellState
from heald_projection.registry import Registry
from heald_projection_cache import projection_cache
from heald_projection_cache.occasions import EVERY_MS
from heald_session import APPEND, Session, session_store
from heald_sqlite import DerivedDatabase

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


class Clock:
    """The host's time, which moves when it is told to."""

    def __init__(self, host: Host) -> None:
        self.time = host.now()
        host.now = lambda: self.time


async def new_session(host: Host) -> Session:
    return await host.scope.require(session_store).create(cwd="/loom")


async def saves(session: Session) -> int:
    """Wait for the saves that are under way, and return how many there were."""
    name = f"checkpoint of {session.id}"
    tasks = [task for task in asyncio.all_tasks() if task.get_name() == name]
    await asyncio.gather(*tasks)
    return len(tasks)


async def kept_up_to(host: Host, session: Session) -> int:
    cache = host.scope.require(projection_cache)
    found = await cache.cached_snapshot(session.header, session.cut, ["title"])
    return 0 if found is None else found.as_of_seq + 1


def work(session: Session, events: int) -> None:
    for _ in range(events):
        session.append("user/message", {"id": "m", "text": "Go on"}, surface=APPEND)


@contextmanager
def held(file: Path) -> Iterator[None]:
    """Keep everyone else from writing a database."""
    other = apsw.Connection(str(file))
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


async def test_a_long_turn_is_kept_now_and_then_and_not_more_often(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        clock = Clock(host)
        session = await new_session(host)
        session.append("turn/start", {"turn": 1})
        work(session, 500)
        assert await saves(session) == 0
        clock.time += EVERY_MS - 1
        work(session, 500)
        assert await saves(session) == 0
        clock.time += 1
        work(session, 500)
        assert await saves(session) == 1
        assert await kept_up_to(host, session) >= 1002
        for _ in range(5):
            clock.time += EVERY_MS // 2
            work(session, 100)
        assert await saves(session) == 2


async def test_the_end_of_a_turn_does_not_wait_for_the_time(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        Clock(host)
        session = await new_session(host)
        for turn in (1, 2, 3):
            session.append("turn/start", {"turn": turn})
            session.append("turn/end", {"turn": turn, "outcome": "completed"})
            assert await saves(session) == 1
            assert await kept_up_to(host, session) == session.end


async def test_what_could_not_be_written_is_written_while_the_next_turn_goes_on(
    open_rows: OpenHost, heald_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_rows() as host:
        clock = Clock(host)
        session = await new_session(host)
        session.append("turn/start", {"turn": 1})
        await host.scope.require(projection_cache).save(session)
        (file,) = (heald_home / "cache").glob("*.sqlite")
        with held(file):
            session.append("turn/end", {"turn": 1, "outcome": "completed"})
            await saves(session)
        assert "passed over" in caplog.text
        assert await kept_up_to(host, session) == 1
        clock.time += EVERY_MS
        session.append("turn/start", {"turn": 2})
        assert await saves(session) == 1
        assert await kept_up_to(host, session) == session.end == 3


async def test_what_could_not_be_written_is_written_when_the_session_closes(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        session.append("turn/start", {"turn": 1})
        await host.scope.require(projection_cache).save(session)
        (file,) = (heald_home / "cache").glob("*.sqlite")
        with held(file):
            session.append("turn/end", {"turn": 1, "outcome": "completed"})
            await saves(session)
        assert await kept_up_to(host, session) == 1
        await host.scope.require(session_store).dispose(session)
        assert await kept_up_to(host, session) == 2


async def test_what_was_lost_with_the_file_is_written_when_the_session_closes(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        session.append("turn/start", {"turn": 1})
        await host.scope.require(projection_cache).save(session)
        for file in (heald_home / "cache").iterdir():
            file.unlink()
        assert await kept_up_to(host, session) == 0
        await host.scope.require(session_store).dispose(session)
        assert await kept_up_to(host, session) == 1


async def test_a_session_that_is_resumed_and_closed_has_a_checkpoint_then(
    open_rows: OpenHost,
) -> None:
    async with open_rows(without="projection-cache") as host:
        session = await new_session(host)
        session.append("turn/start", {"turn": 1})
        session.append("turn/end", {"turn": 1, "outcome": "completed"})
    async with open_rows() as host:
        store = host.scope.require(session_store)
        again = await store.resume(session.id)
        assert await kept_up_to(host, again) == 0
        await store.dispose(again)
        assert await kept_up_to(host, again) == 2


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the ids of sessions whose cells are taken, as they are."""
    found: list[str] = []
    cells = Registry.cells

    def noted(registry: Registry, session: Session) -> Sequence[CellState]:
        found.append(session.id)
        return cells(registry, session)

    monkeypatch.setattr(Registry, "cells", noted)
    return found


async def test_a_host_that_stops_saves_each_session_once(
    open_rows: OpenHost, folds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_rows() as host:
        sessions = [await new_session(host) for _ in range(3)]
        for session in sessions:
            work(session, 3)
            await session.flush()
        flushes: list[str] = []
        flush = type(sessions[0]).flush

        async def noted(session: Any) -> None:
            flushes.append(session.id)
            await flush(session)

        monkeypatch.setattr(type(sessions[0]), "flush", noted)
    ids = [session.id for session in sessions]
    assert folds == ids
    assert sorted(flushes) == sorted([*ids, *ids])  # a save, and the disposal by the store
    async with open_rows() as host:
        assert [await kept_up_to(host, session) for session in sessions] == [3, 3, 3]


async def test_what_a_row_logs_while_the_host_closes_is_kept_too(
    open_rows: OpenHost, folds: list[str]
) -> None:
    class Late(Plugin[NoConfig]):
        @implements(host_closing)
        async def log(self) -> None:
            work(self.scope.require(session_store).live()[0], 1)

    discovery = Discovery(program={"late": Late})
    async with open_rows(last=("late",), discovery=discovery) as host:
        goes_on, rests = await new_session(host), await new_session(host)
        work(goes_on, 3)
        work(rests, 3)
    assert folds == [goes_on.id, rests.id, goes_on.id]
    async with open_rows() as host:
        assert [await kept_up_to(host, s) for s in (goes_on, rests)] == [4, 3]


async def test_what_could_not_be_written_while_the_host_closes_is_written_when_the_row_stops(
    open_rows: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(Plugin[NoConfig]):
        @implements(host_closing)
        async def mend(self) -> None:
            broken.undo()

    async def fails(*_: object) -> bool:
        return False

    discovery = Discovery(program={"late": Late})
    with monkeypatch.context() as broken:
        async with open_rows(last=("late",), discovery=discovery) as host:
            session = await new_session(host)
            work(session, 3)
            broken.setattr(DerivedDatabase, "write", fails)
    async with open_rows() as host:
        assert await kept_up_to(host, session) == 3


async def test_a_host_that_stops_keeps_its_sessions_whichever_order_its_rows_have(
    open_rows: OpenHost,
) -> None:
    async with open_rows(without="persistence", last=("persistence",)) as host:
        session = await new_session(host)
        work(session, 3)
    async with open_rows() as host:
        assert await kept_up_to(host, session) == 3
