"""A session that starts with the first events of another."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heald import Host, Row
from heald import open_host as open_host_at
from heald_persistence import session_persistence
from heald_session import (
    APPEND,
    CutInvalid,
    Event,
    LogNeedsPlugin,
    LogOffset,
    NewEvent,
    Session,
    SessionId,
    SessionIdTaken,
    SessionNotFound,
    SessionStore,
    session_store,
)
from heald_session.testing import append_unchecked

OpenHost = Callable[..., Any]
ONE, TWO = SessionId("one"), SessionId("two")

TURN: list[tuple[str, dict[str, Any]]] = [
    ("turn/start", {"turn": 1}),
    ("user/message", {"id": "m", "text": "hi"}),
    ("step/start", {"turn": 1, "step": 1, "model": "scripted:demo"}),
    ("assistant/message", {"text": "", "tool_calls": [{"id": "c", "name": "t", "arguments": 1}]}),
    ("tool/start", {"call_id": "c", "name": "t"}),
    ("tool/result", {"call_id": "c", "name": "t", "text": "r"}),
    ("step/end", {"turn": 1, "step": 1}),
    ("turn/end", {"turn": 1, "outcome": "completed"}),
]
LOG = [("acme/note", {"text": "before"}), *TURN, ("acme/note", {"text": "between"}), *TURN]
LEGAL = [0, 1, 9, 10, 18]


async def parent_of(store: SessionStore, **facts: Any) -> Session:
    session = await store.create(cwd="/loom", id=ONE, **facts)
    for kind, data in LOG:
        seen = kind in ("user/message", "assistant/message", "tool/result")
        session.append(kind, data, surface=APPEND if seen else None)
    return session


def raw(events: Sequence[Event]) -> list[bytes]:
    return [msgspec.json.encode(event) for event in events]


@pytest.mark.parametrize("source", ["live", "stored"])
async def test_a_fork_is_cut_at_every_place_outside_a_turn_and_nowhere_else(
    host: Host, source: str
) -> None:
    store = host.scope.require(session_store)
    parent = await parent_of(store)
    if source == "stored":
        await store.dispose(parent)
    for offset in range(-1, len(LOG) + 2):
        cut = LogOffset(offset)
        if offset in LEGAL:
            child = await store.fork(ONE, cut=cut)
            assert (child.cut, child.end) == (offset, offset)
            assert raw(child.hot()) == raw(parent.hot())[:offset]
            assert child.header.is_seeded == (offset > 0)
        else:
            with pytest.raises(CutInvalid) as refused:
                await store.fork(ONE, cut=cut, id=TWO)
            assert (refused.value.code, refused.value.cut) == ("CUT_INVALID", offset)
            assert store.get(TWO) is None
    inside = pytest.raises(CutInvalid, match="a turn is open there; cut at 1 or 9")
    with inside:
        await store.fork(ONE, cut=LogOffset(4))


@pytest.mark.parametrize("source", ["live", "stored"])
async def test_a_fork_is_stored_without_being_opened(host: Host, source: str) -> None:
    store, storage = host.scope.require(session_store), host.scope.require(session_persistence)
    parent = await parent_of(store, origin="subagent")
    if source == "stored":
        await store.dispose(parent)
    live = store.live()
    for offset in range(-1, len(LOG) + 2):
        cut = LogOffset(offset)
        if offset in LEGAL and offset > 0:
            header = await store.fork_stored(ONE, cut=cut)
            async with await storage.read(header.id) as log:
                assert (log.header, log.cut, log.end) == (header, cut, cut)
            assert (header.parent_session, header.origin, header.is_seeded) == (ONE, None, True)
            child = await store.resume(header.id)
            assert raw(child.hot()) == raw(parent.hot())[:offset]
            await store.dispose(child)
        else:
            with pytest.raises(CutInvalid) as refused:
                await store.fork_stored(ONE, cut=cut, id=TWO)
            assert refused.value.cut == offset
    with pytest.raises(CutInvalid, match="a turn is open there; cut at 1 or 9"):
        await store.fork_stored(ONE, cut=LogOffset(4))
    assert (await store.fork_stored(ONE, id=TWO)).id == TWO
    with pytest.raises(SessionIdTaken):
        await store.fork_stored(ONE, id=TWO)
    with pytest.raises(SessionNotFound):
        await store.fork_stored(SessionId("nobody"))
    assert store.live() == live


async def test_a_turn_that_was_opened_long_before_the_cut_is_found(host: Host) -> None:
    store = host.scope.require(session_store)
    session = await store.create(cwd=None, id=ONE)
    session.append("turn/start", {"turn": 1})
    for _ in range(3_000):
        session.append("acme/note", {"text": "a"})
    with pytest.raises(CutInvalid, match="a turn is open there; cut at 0"):
        await store.fork_stored(ONE)
    session.append("turn/end", {"turn": 1, "outcome": "completed"})
    await store.fork_stored(ONE)


async def test_without_a_cut_it_is_all_of_it_or_nothing(host: Host) -> None:
    store = host.scope.require(session_store)
    parent = await parent_of(store)
    child = await store.fork(ONE)
    assert child.cut == parent.end == len(LOG)
    parent.append("turn/start", {"turn": 3})
    with pytest.raises(CutInvalid, match=f"cut at {len(LOG)}$"):
        await store.fork(ONE)


async def test_what_a_fork_keeps_of_its_sources_header(host: Host) -> None:
    store = host.scope.require(session_store)
    host.now = lambda: 1_000
    facts = {"delegation_depth": 2, "origin": "subagent", "agent_preset": "minimal"}
    parent = await parent_of(store, parent_session=SessionId("zero"), **facts)
    host.now = lambda: 2_000
    header = (await store.fork(ONE)).header
    assert header.cwd == "/loom"
    assert header.delegation_depth == 2
    assert header.agent_preset == "minimal"
    assert header.origin is None
    assert header.parent_session == ONE
    assert header.created_at == 2_000
    assert header.is_seeded
    assert header.log_id != parent.header.log_id


async def test_a_fork_may_have_facts_of_its_own_but_not_another_identity(host: Host) -> None:
    store = host.scope.require(session_store)
    await parent_of(store)
    child = await store.fork(
        ONE,
        id=TWO,
        header=lambda old: msgspec.structs.replace(
            old, id=ONE, log_id="", is_seeded=False, origin="subagent", delegation_depth=7
        ),
    )
    assert (child.header.origin, child.header.delegation_depth) == ("subagent", 7)
    assert (child.header.id, child.header.is_seeded, child.id) == (TWO, True, TWO)
    assert child.header.log_id


async def test_a_childs_cut_and_prefix_are_exact_after_a_reload_and_the_parent_may_go(
    open_host: OpenHost,
) -> None:
    first = [NewEvent("acme/note", {"text": "who I am"})]
    async with open_host() as host:
        store = host.scope.require(session_store)
        parent = await parent_of(store)
        child = await store.fork(ONE, id=TWO, cut=LogOffset(9), first=first)
        assert child.flushed == child.end == 10
        before = raw(child.hot())
        assert before[:9] == raw(parent.hot())[:9]
    shutil.rmtree(host.home / "sessions" / "one")
    async with open_host() as host:
        child = await host.scope.require(session_store).resume(TWO)
        assert (child.cut, child.end) == (9, 10)
        assert raw(child.hot()) == before
        child.append("acme/note", {"text": "more"})
        assert child.cut == 9


@pytest.mark.parametrize(
    ("source", "kept"), [("live", "on disk"), ("stored", "on disk"), ("live", "in memory")]
)
async def test_a_child_of_every_legal_cut_outlives_its_parent(
    open_host: OpenHost, source: str, kept: str
) -> None:
    stored = kept == "on disk"
    async with open_host(stored=stored) as host:
        store = host.scope.require(session_store)
        parent = await parent_of(store)
        before = raw(parent.hot())
        if source == "stored":
            await store.dispose(parent)
        children = [await store.fork(ONE, cut=LogOffset(cut)) for cut in LEGAL if cut]
        if source == "live":
            await store.dispose(parent)
        if stored:
            for child in children:
                await store.dispose(child)
            await host.scope.require(session_persistence).delete(ONE)
            children = [await store.resume(child.id) for child in children]
        for child, cut in zip(children, LEGAL[1:], strict=True):
            assert (child.cut, child.end, child.header.is_seeded) == (cut, cut, True)
            assert raw([event async for event in child.read()]) == before[:cut]
            assert child.append("acme/note", {"text": "mine"}).seq == cut


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), max_size=6))
def test_own_is_what_follows_the_cut_along_every_chain_of_forks(
    links: list[tuple[int, int]],
) -> None:
    for source in ("live", "stored"):
        with tempfile.TemporaryDirectory() as home:
            asyncio.run(forked_along(Path(home), links, source))


async def forked_along(home: Path, links: list[tuple[int, int]], source: str) -> None:
    """Fork a chain, each link with so many events of its own, cut at some place of the one before.

    `whose` has for each event of each session the number of the session that wrote it.
    """
    rows = [Row("session", "session", {"hot_events": 4}), Row("persistence", "persistence")]
    async with open_host_at(home=home, rows=rows, env={}, strict=True) as host:
        store = host.scope.require(session_store)
        chain, whose = [await store.create(cwd=None)], [list[int]()]
        for number, (own, place) in enumerate([*links, (1, 0)]):
            for n in range(own):
                chain[-1].append("session/renamed", {"title": f"{n}"})
            whose[-1] += [number] * own
            cut = place % (len(whose[-1]) + 1)
            if source == "stored" and chain[-1].end:
                await store.dispose(chain[-1])
            chain.append(await store.fork(chain[-1].id, cut=LogOffset(cut)))
            whose.append(whose[-1][:cut])
        for number, session in enumerate(chain):
            if session.end:
                await store.dispose(session)
                session = await store.resume(session.id)  # noqa: PLW2901 - the same, read again
            assert session.end == len(whose[number])
            async for event in session.read():
                assert session.is_own(event.seq) == (whose[number][event.seq] == number)
                assert session.is_own(event.seq) == (event.seq >= session.cut)


async def test_a_source_that_is_nowhere_and_an_id_that_is_taken_are_refused(host: Host) -> None:
    store = host.scope.require(session_store)
    with pytest.raises(SessionNotFound):
        await store.fork(ONE)
    await parent_of(store)
    with pytest.raises(SessionIdTaken):
        await store.fork(ONE, id=ONE)


async def test_events_that_must_be_understood_are_not_inherited_by_someone_who_does_not(
    host: Host,
) -> None:
    store = host.scope.require(session_store)
    session = await store.create(cwd=None, id=ONE)
    session.append("acme/note", {"text": ""})
    append_unchecked(session, "nobody/knows", {}, required=True)
    with pytest.raises(LogNeedsPlugin, match="nobody/knows"):
        await store.fork(ONE)
    assert (await store.fork(ONE, cut=LogOffset(1))).end == 1


async def test_first_events_that_are_refused_leave_no_child(host: Host) -> None:
    store = host.scope.require(session_store)
    await (await parent_of(store)).flush()
    with pytest.raises(LookupError):
        await store.fork(ONE, id=TWO, first=[NewEvent("nobody/knows", {})])
    assert store.get(TWO) is None
    listed = await host.scope.require(session_persistence).list()
    assert [stored.name for stored in listed] == ["one"]
    await store.fork(ONE, id=TWO)
