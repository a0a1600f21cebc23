"""Projections of sessions that a list has shown, without another list."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import pytest

from heald import Cancelled, CancelToken, Host
from heald_persistence import session_persistence
from heald_projection import Snapshot
from heald_projection_cache import projection_cache
from heald_query import SessionQuery, session_query
from heald_session import Header, Session, SessionId, SessionStore, session_store

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]
KEYS = ("sessionStats",)


def query_of(host: Host) -> SessionQuery:
    return host.scope.require(session_query)


def store_of(host: Host) -> SessionStore:
    return host.scope.require(session_store)


async def session_with(host: Host, name: str, turns: int = 1, *, live: bool = True) -> Session:
    session = await store_of(host).create(cwd="/loom", id=SessionId(name))
    await work(host, session, turns, live=live)
    return session


async def work(host: Host, session: Session, turns: int = 1, *, live: bool = True) -> None:
    for turn in range(1, turns + 1):
        session.append("turn/start", {"turn": turn})
        session.append("turn/end", {"turn": turn, "outcome": "completed"})
    await session.flush()
    if not live:
        await store_of(host).dispose(session)


async def turns(host: Host, *headers: Header) -> dict[str, int]:
    found = await query_of(host).known_values(headers, KEYS)
    return {id_: snapshot.values["sessionStats"]["turns"] for id_, snapshot in found.items()}


@pytest.fixture
def surveys(monkeypatch: pytest.MonkeyPatch) -> Callable[[Host], list[object]]:
    """Return what records that storage is asked what there is."""

    def surveys(host: Host) -> list[object]:
        found: list[object] = []
        storage = type(host.scope.require(session_persistence))
        survey = storage.survey

        def counted(self: Any, *args: Any, **given: Any) -> Any:
            found.append(args)
            return survey(self, *args, **given)

        monkeypatch.setattr(storage, "survey", counted)
        return found

    return surveys


async def test_they_are_what_a_list_has_beside_each_and_nothing_is_listed_again(
    open_rows: OpenHost, surveys: Callable[[Host], list[object]]
) -> None:
    async with open_rows() as host:
        live = await session_with(host, "live", 2)
        await session_with(host, "cold", 3, live=False)
        await session_with(host, "other", 4, live=False)
        await work(host, await store_of(host).fork(live.id, id=SessionId("seeded")), live=False)
        records = await query_of(host).list_sessions(keys=KEYS)
        asked = surveys(host)
        headers = [r.header for r in records if r.header is not None and r.id != "other"]
        found = await query_of(host).known_values(headers, KEYS)
        assert found == {r.id: r.projections for r in records if r.id != "other"}
        assert await turns(host, *headers) == {"live": 2, "cold": 3, "seeded": 3}
        assert asked == []


async def test_a_session_is_asked_where_it_is_now_and_not_where_it_was_listed(
    open_rows: OpenHost,
) -> None:
    async with open_rows() as host:
        leaves = await session_with(host, "leaves", 2)
        returns = await session_with(host, "returns", 1, live=False)
        headers = (leaves.header, returns.header)
        assert await turns(host, *headers) == {"leaves": 2, "returns": 1}
        await work(host, leaves, 1, live=False)
        await work(host, await store_of(host).resume(SessionId("returns")), 4)
        assert await turns(host, *headers) == {"leaves": 3, "returns": 5}


async def test_another_session_of_the_same_id_has_no_values_for_the_one_that_was_listed(
    open_rows: OpenHost,
) -> None:
    async with open_rows() as host:
        live = await session_with(host, "live")
        cold = await session_with(host, "cold", live=False)
        others = [msgspec.structs.replace(s.header, log_id="other") for s in (live, cold)]
        assert await turns(host, *others) == {}


async def test_what_nobody_knows_is_absent(
    open_rows: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_rows() as host:
        cold = await session_with(host, "cold", live=False)
        live = await session_with(host, "live")
        seeded = msgspec.structs.replace(live.header, id=SessionId("seeded"), is_seeded=True)
        assert await query_of(host).known_values([], KEYS) == {}
        assert await turns(host, cold.header, seeded) == {"cold": 1}

        async def fail(*_: object, **__: object) -> None:
            raise RuntimeError("broken")

        cache = host.scope.require(projection_cache)
        monkeypatch.setattr(type(cache), "cached_snapshots", fail)
        assert await turns(host, cold.header, live.header) == {"live": 1}
    async with open_rows(without=("projection-cache",)) as host:
        assert await turns(host, cold.header) == {}
    async with open_rows(without=("projection-cache", "projection")) as host:
        again = await store_of(host).resume(SessionId("cold"))
        assert await turns(host, again.header) == {}


async def test_a_key_that_no_unit_has_is_absent(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        live = await session_with(host, "live")
        cold = await session_with(host, "cold", live=False)
        found = await query_of(host).known_values([live.header, cold.header], ["nobodys"])
        assert found == {"live": Snapshot(1, {}), "cold": Snapshot(1, {})}


async def test_who_no_longer_wants_them_is_told_so(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        live = await session_with(host, "live")
        cancel = CancelToken()
        cancel.cancel("enough")
        with pytest.raises(Cancelled, match="enough"):
            await query_of(host).known_values([live.header], KEYS, cancel=cancel)
