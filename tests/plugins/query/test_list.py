"""The list of every session: live, stored, broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from heald import Cancelled, CancelToken, Host, NoConfig, Plugin, implements
from heald_projection import Snapshot, Unit, projections, units
from heald_query import SessionQuery, session_query
from heald_session import APPEND, Session, SessionId, session_store

Install = Callable[..., None]
OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


def query_of(host: Host) -> SessionQuery:
    return host.scope.require(session_query)


async def session_with(host: Host, name: str, text: str = "Count the files") -> Session:
    session = await host.scope.require(session_store).create(cwd="/loom", id=SessionId(name))
    session.append("turn/start", {"turn": 1})
    session.append("user/message", {"id": "m", "text": text}, surface=APPEND)
    session.append("turn/end", {"turn": 1, "outcome": "completed"})
    await session.flush()
    return session


async def stored(host: Host, name: str, text: str = "Count the files") -> Session:
    session = await session_with(host, name, text)
    await host.scope.require(session_store).dispose(session)
    return session


async def test_the_corpus_is_the_union_of_live_and_stored(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        store = host.scope.require(session_store)
        await stored(host, "cold")
        await session_with(host, "both")
        await store.create(cwd=None, id=SessionId("unwritten"))
        found = {
            record.id: (record.live, record.stored)
            for record in await query_of(host).list_sessions()
        }
        assert found == {
            "cold": (False, True),
            "both": (True, True),
            "unwritten": (True, False),
        }


async def test_a_session_that_is_kept_nowhere_is_listed_while_it_lives(
    open_rows: OpenHost,
) -> None:
    async with open_rows(without=("persistence",)) as host:
        session = await session_with(host, "one")
        [record] = await query_of(host).list_sessions(keys=["title"])
        assert (record.live, record.stored) == (True, False)
        assert record.projections == Snapshot(2, {"title": {"text": "Count the files"}})
        await host.scope.require(session_store).dispose(session)
        assert await query_of(host).list_sessions() == []


async def test_without_sessions_the_list_is_empty(open_rows: OpenHost) -> None:
    async with open_rows(without=("session", "projection-cache")) as host:
        assert await query_of(host).list_sessions() == []


async def test_a_broken_session_is_one_marked_record(open_rows: OpenHost, heald_home: Path) -> None:
    async with open_rows() as host:
        await stored(host, "sound")
        await stored(host, "broken")
        (heald_home / "sessions" / "broken" / "session.json").write_text("{")
        (heald_home / "sessions" / "empty").mkdir()
        records = {r.id: r for r in await query_of(host).list_sessions(keys=["title"])}
        assert set(records) == {"sound", "broken", "empty"}
        assert records[SessionId("sound")].problem is None
        assert records[SessionId("sound")].projections is not None
        for name in ("broken", "empty"):
            record = records[SessionId(name)]
            assert (record.header, record.projections, record.stored) == (None, None, True)
            assert record.problem


async def test_a_live_session_wins_over_what_is_stored_in_its_place(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        session = await session_with(host, "one")
        (heald_home / "sessions" / "one" / "session.json").write_text("{")
        [record] = await query_of(host).list_sessions(keys=["title"])
        assert record.header is session.header
        assert (record.live, record.stored, record.problem) == (True, True, None)


async def test_cold_values_come_from_checkpoints_and_are_absent_without(
    open_rows: OpenHost,
) -> None:
    async with open_rows() as host:
        await stored(host, "one")
        [record] = await query_of(host).list_sessions(keys=["title", "nobodys"])
        assert record.projections == Snapshot(2, {"title": {"text": "Count the files"}})
        [record] = await query_of(host).list_sessions()
        assert record.projections is None
    async with open_rows(without=("projection-cache",)) as host:
        [record] = await query_of(host).list_sessions(keys=["title"])
        assert record.projections is None


async def test_a_forked_session_is_served_the_checkpoint_of_its_own_cut(
    open_rows: OpenHost,
) -> None:
    async with open_rows() as host:
        store = host.scope.require(session_store)
        await session_with(host, "source")
        child = await store.fork(SessionId("source"), id=SessionId("child"))
        child.append("turn/start", {"turn": 2})
        await store.dispose(child)
        records = {r.id: r for r in await query_of(host).list_sessions(keys=["sessionStats"])}
        found = records[SessionId("child")].projections
        assert found is not None
        assert (found.as_of_seq, found.values["sessionStats"]["turns"]) == (3, 2)


async def test_listing_opens_no_log(open_rows: OpenHost, heald_home: Path) -> None:
    async with open_rows() as host:
        for number in range(3):
            await stored(host, f"s{number}")
        for log in (heald_home / "sessions").glob("*/tail.jsonl"):
            log.unlink()
        records = await query_of(host).list_sessions(keys=["title"])
        assert [record.projections is not None for record in records] == [True, True, True]


async def test_a_faulted_projection_is_missing_from_its_row_and_nothing_else_is(
    open_rows: OpenHost, install: Install
) -> None:
    def refuse(_state: Any, _event: Any) -> Any:
        raise ValueError("never")

    class Faulty(Plugin[NoConfig]):
        @classmethod
        @implements(units)
        def declare(cls) -> Iterable[Unit]:
            unit = Unit(
                key="faulty",
                state_version=1,
                event_types=None,
                initial=lambda *_: 0,
                apply=refuse,
                view=str,
            )
            return [unit]

    install(faulty=Faulty)
    async with open_rows() as host:
        await session_with(host, "one")
        [record] = await query_of(host).list_sessions(keys=["faulty", "title"])
        assert record.projections == Snapshot(2, {"title": {"text": "Count the files"}})


async def test_a_cache_that_fails_costs_the_values_only(
    open_rows: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heald_projection_cache import projection_cache

    async with open_rows() as host:
        await stored(host, "one")

        async def fail(*_: object, **__: object) -> None:
            raise RuntimeError("broken")

        cache = host.scope.require(projection_cache)
        monkeypatch.setattr(type(cache), "cached_snapshots", fail)
        monkeypatch.setattr(type(cache), "checkpoint", fail)
        [record] = await query_of(host).list_sessions(keys=["title"])
        assert record.projections is None
        async with query_of(host).observe_session(SessionId("one"), ["title"]) as observed:
            assert observed.projections.values == {"title": {"text": "Count the files"}}


async def test_a_session_that_closes_while_storage_is_listed_is_not_lost(
    open_rows: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heald_persistence import session_persistence

    async with open_rows() as host:
        store = host.scope.require(session_store)
        session = await store.create(cwd=None, id=SessionId("one"))
        kind = type(host.scope.require(session_persistence))
        survey = kind.survey

        async def survey_then_close(self: Any, *known: Any, **given: Any) -> Any:
            found = await survey(self, *known, **given)
            if session.end == 0:
                session.append("turn/start", {"turn": 1})
                await store.dispose(session)
            return found

        monkeypatch.setattr(kind, "survey", survey_then_close)
        [record] = await query_of(host).list_sessions()
        assert (record.id, record.live, record.stored) == ("one", False, True)


async def test_a_cancelled_listing_says_so(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        token = CancelToken()
        token.cancel()
        with pytest.raises(Cancelled):
            await query_of(host).list_sessions(cancel=token)


async def test_the_registry_may_be_absent(open_rows: OpenHost) -> None:
    async with open_rows(without=("projection", "projection-cache")) as host:
        assert host.scope.find(projections) is None
        await session_with(host, "one")
        [record] = await query_of(host).list_sessions(keys=["title"])
        assert record.projections is None
