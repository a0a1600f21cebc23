"""Filters, orders and pages of a list, also while sessions come and go."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heald import Host, Row, open_host
from heald_persistence import session_persistence
from heald_query import Order, Position, SessionFilter, SessionQuery, session_query
from heald_session import APPEND, Session, SessionId, session_store
from heald_session.testing import append_unchecked

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]
NAMES = ("session", "persistence-memory", "query")
CHANGE = st.tuples(
    st.sampled_from(["create", "delete", "dispose", "append"]), st.integers(0, 9), st.integers(0, 5)
)


def query_of(host: Host) -> SessionQuery:
    return host.scope.require(session_query)


class World:
    """Sessions that come and go; what an id stood for is remembered by its log."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.store = host.scope.require(session_store)

    async def change(self, kind: str, number: int, created_at: int) -> None:
        id_ = SessionId(f"s{number}")
        session = self.store.get(id_)
        stored = id_ in {one.name for one in await self.storage.list()}
        if kind == "create" and session is None and not stored:
            self.host.now = lambda: created_at
            session = await self.store.create(cwd=None, id=id_)
            session.append("turn/start", {"turn": 1})
            await session.flush()
        elif kind == "append" and session is not None:
            session.append("inbox/message", {"id": "m", "text": "more"})
        elif kind in ("dispose", "delete") and session is not None:
            await self.store.dispose(session)
        if kind == "delete" and (stored or session is not None):
            await self.storage.delete(id_)

    @property
    def storage(self) -> Any:
        return self.host.scope.require(session_persistence)

    async def logs(self) -> set[str]:
        records = await query_of(self.host).list_sessions()
        return {record.header.log_id for record in records if record.header is not None}


@given(
    before=st.lists(CHANGE, max_size=12),
    between=st.lists(st.lists(CHANGE, max_size=3), max_size=12),
    limit=st.integers(1, 4),
    order=st.sampled_from(["created", "-created"]),
)
@settings(max_examples=60, deadline=None)
def test_pages_show_each_session_once_and_leave_none_out_whatever_happens_between_them(
    before: list[Any], between: list[list[Any]], limit: int, order: Order
) -> None:
    async def body() -> None:
        rows = [Row(id=name, plugin=name) for name in NAMES]
        with tempfile.TemporaryDirectory() as home:
            async with open_host(home=Path(home), rows=rows, env={}, strict=True) as host:
                world = World(host)
                for change in before:
                    await world.change(*change)
                there_all_along = await world.logs()
                seen: list[str] = []
                place: Position | None = None
                changes = iter(between)
                while True:
                    page = await query_of(host).list_sessions(order=order, limit=limit, after=place)
                    seen += [one.header.log_id for one in page if one.header is not None]
                    if not page:
                        break
                    place = Position.parse(str(page[-1].position))
                    for change in next(changes, []):
                        await world.change(*change)
                    there_all_along &= await world.logs()
                assert len(seen) == len(set(seen))
                assert there_all_along <= set(seen)

    asyncio.run(body())


async def made(host: Host, name: str, at: int = 1, **facts: Any) -> Session:
    host.now = lambda: at
    store = host.scope.require(session_store)
    session = await store.create(**{"cwd": None, "id": SessionId(name), **facts})
    session.append("turn/start", {"turn": 1})
    await session.flush()
    return session


async def ids(host: Host, where: SessionFilter | None = None, **given: Any) -> list[str]:
    return [record.id for record in await query_of(host).list_sessions(where, **given)]


async def test_without_arguments_every_session_is_there_oldest_first(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        await made(host, "late", 9)
        await made(host, "b", 5)
        await made(host, "a", 5, origin="subagent", delegation_depth=1)
        assert await ids(host) == ["a", "b", "late"]
        assert await ids(host, order="-created") == ["late", "a", "b"]


async def test_broken_sessions_come_last_in_every_order(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        await made(host, "one", 5)
        await made(host, "two", 6)
        (heald_home / "sessions" / "broken").mkdir()
        for order, wanted in (
            ("created", ["one", "two", "broken"]),
            ("-created", ["two", "one", "broken"]),
            ("-activity", ["two", "one", "broken"]),
        ):
            assert await ids(host, order=order) == wanted
        (last,) = await query_of(host).list_sessions(
            order="-created", limit=5, after=Position(5, SessionId("one"))
        )
        assert (last.id, last.header) == ("broken", None)
        assert await ids(host, order="-created", after=last.position) == []


async def test_filters_are_combined(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        store = host.scope.require(session_store)
        await made(host, "root", 1, cwd="/a")
        await made(host, "below", 2, cwd="/a/b", agent_preset="minimal")
        await made(host, "beside", 3, cwd="/ab")
        child = await made(
            host, "child", 4, cwd="/a", parent_session=SessionId("root"), origin="subagent"
        )
        await store.dispose(child)
        for where, wanted in (
            (SessionFilter(), ["root", "below", "beside", "child"]),
            (SessionFilter(subagents=False), ["root", "below", "beside"]),
            (SessionFilter(subagents=True), ["child"]),
            (SessionFilter(cwd="/a"), ["root", "below", "child"]),
            (SessionFilter(cwd="/a/"), ["root", "below", "child"]),
            (SessionFilter(cwd="/"), ["root", "below", "beside", "child"]),
            (SessionFilter(parent_session=SessionId("root")), ["child"]),
            (SessionFilter(live=True), ["root", "below", "beside"]),
            (SessionFilter(live=False), ["child"]),
            (SessionFilter(created_from=2, created_before=4), ["below", "beside"]),
            (SessionFilter(cwd="/a", subagents=False, created_from=2), ["below"]),
            (SessionFilter(preset="minimal"), ["below"]),
        ):
            assert await ids(host, where) == wanted, where
        assert await ids(host, SessionFilter(cwd="/a"), order="-created", limit=2) == [
            "child",
            "below",
        ]


async def test_a_preset_is_what_the_session_runs_now_live_or_stored(open_rows: OpenHost) -> None:
    async with open_rows(last=("preset",)) as host:
        store = host.scope.require(session_store)
        session = await made(host, "one", agent_preset="standard")
        append_unchecked(session, "agent-preset/selected", {"preset": "minimal"})
        await made(host, "other", agent_preset="standard")
        for _ in ("live", "stored"):
            assert await ids(host, SessionFilter(preset="minimal")) == ["one"]
            assert await ids(host, SessionFilter(preset="standard")) == ["other"]
            [record] = await query_of(host).list_sessions(SessionFilter(preset="minimal"))
            assert record.projections is None
            if not session.closed:
                await store.dispose(session)


async def test_the_last_active_comes_first_live_or_stored(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        store = host.scope.require(session_store)
        first = await made(host, "first", 1000)
        await made(host, "second", 2000)
        host.now = lambda: 9000
        first.append("user/message", {"id": "m", "text": "Again"}, surface=APPEND)
        first.append("turn/end", {"turn": 1, "outcome": "completed"})
        assert await ids(host, order="-activity") == ["first", "second"]
        await store.dispose(first)
        assert await ids(host, order="-activity", limit=1) == ["first"]
        assert await ids(host) == ["first", "second"]
        with pytest.raises(ValueError, match="activity"):
            await ids(host, order="-activity", after=Position(1, SessionId("first")))


async def test_only_the_sessions_of_the_page_are_looked_up_and_all_at_once(
    open_rows: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heald_projection_cache import projection_cache

    async with open_rows() as host:
        store = host.scope.require(session_store)
        for number in range(6):
            await store.dispose(await made(host, f"s{number}", number))
        cache = type(host.scope.require(projection_cache))
        asked: list[list[str]] = []
        real = cache.cached_snapshots

        async def noting(self: Any, logs: Any, keys: Any, **rest: Any) -> Any:
            asked.append([header.id for header, _ in logs])
            return await real(self, logs, keys, **rest)

        monkeypatch.setattr(cache, "cached_snapshots", noting)
        page = await query_of(host).list_sessions(order="-created", limit=2, keys=["title"])
        assert [one.projections is not None for one in page] == [True, True]
        assert asked == [["s5", "s4"]]


@given(st.integers(-(2**53), Position.UNKNOWN), st.text(min_size=1))
def test_a_position_is_read_back_as_it_was_written(created_at: int, name: str) -> None:
    position = Position(created_at, SessionId(name))
    assert Position.parse(str(position)) == position


@pytest.mark.parametrize("text", ["", "x", "1", "1.", ".a", "1,a", "-.a", "one.a"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="position"):
        Position.parse(text)
