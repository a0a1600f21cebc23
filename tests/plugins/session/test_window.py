"""A session longer than its hot window: what is in memory, what is read from storage."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heald import Host, Row
from heald import open_host as open_host_at
from heald_persistence import LogChanged, SessionNotSaved, disk, session_persistence
from heald_projection import ProjectionFaulted, ProjectionNotReady, projections
from heald_session import APPEND, LogOffset, Session, SessionId, session_store

OpenHost = Callable[..., Any]
PluginOf = Callable[[Host, str], Any]
ONE, TWO = SessionId("one"), SessionId("two")
HOLDER = Row("holder", "acme-holder")
FOLDS = (Row("projection", "projection"), Row("units", "acme-units"))
SMALL = {"hot_events": 40}


async def opened(host: Host) -> Session:
    return await host.scope.require(session_store).create(cwd=None, id=ONE)


async def fill(session: Session, count: int, text: str = "a", *, at_once: int = 10) -> None:
    """Append notes, made durable a few at a time."""
    for n in range(count):
        session.append("acme/note", {"text": text})
        if n % at_once == at_once - 1:
            await session.flush()
    await session.flush()


async def seqs(session: Session, start: int = 0, stop: int | None = None) -> list[int]:
    end = None if stop is None else LogOffset(stop)
    return [event.seq async for event in session.read(LogOffset(start), end)]


async def test_old_events_leave_memory_and_are_read_from_storage(open_host: OpenHost) -> None:
    async with open_host(window=SMALL) as host:
        session = await opened(host)
        for _ in range(20):
            await fill(session, 25)
            assert len(session.hot()) <= 40
            assert session.hot_from + len(session.hot()) == session.end
        assert [event.seq for event in session.hot()] == list(range(session.hot_from, 500))
        with pytest.raises(IndexError):
            session.hot(LogOffset(session.hot_from - 1))
        assert await seqs(session) == list(range(500))
        assert await seqs(session, 7, 12) == list(range(7, 12))
        around = session.hot_from
        assert await seqs(session, around - 2, around + 2) == list(range(around - 2, around + 2))
        assert await seqs(session, 499) == [499]
        assert await seqs(session, 500, 600) == []


async def test_large_events_leave_memory_by_their_bytes(open_host: OpenHost) -> None:
    async with open_host(window={"hot_bytes": 50_000}) as host:
        session = await opened(host)
        await fill(session, 30, "x" * 10_000)
        assert 1 <= len(session.hot()) <= 4
        await fill(session, 1, "x" * 100_000)
        assert [event.seq for event in session.hot()] == [30]  # the newest stays, however large
        assert await seqs(session) == list(range(31))


async def test_what_is_not_durable_yet_stays_in_memory(open_host: OpenHost) -> None:
    async with open_host(window=SMALL) as host:
        session = await opened(host)
        for _ in range(200):  # nothing here lets a write begin
            session.append("acme/note", {"text": "a"})
        assert (session.flushed, session.hot_from) == (0, 0)
        await session.flush()
        assert len(session.hot()) <= 40


async def test_a_session_that_is_not_being_saved_drops_nothing(
    open_host: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_host(window=SMALL) as host:
        session = await opened(host)
        await fill(session, 30)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "write", no_room)
            for _ in range(100):
                session.append("acme/note", {"text": "a"})
                with pytest.raises(SessionNotSaved):
                    await session.flush()
            assert (session.flushed, len(session.hot(LogOffset(30)))) == (30, 100)
            assert await seqs(session) == list(range(130))
        await session.flush()
        assert len(session.hot()) <= 40
        assert await seqs(session) == list(range(130))


def no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")


steps = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 12)),
    st.tuples(st.just("large"), st.integers(1, 3)),
    st.tuples(st.just("flush"), st.none()),
    st.tuples(st.just("reopen"), st.none()),
    st.tuples(st.just("read"), st.tuples(st.integers(0, 60), st.integers(0, 60))),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, max_size=15), st.integers(1, 9))
def test_whatever_is_in_memory_the_log_reads_the_same(
    plan: list[tuple[str, Any]], limit: int
) -> None:
    for storage in ("persistence", "persistence-memory"):
        with tempfile.TemporaryDirectory() as home:
            asyncio.run(play(Path(home), plan, limit, storage))


async def play(home: Path, plan: list[tuple[str, Any]], limit: int, storage: str) -> None:
    window = {"hot_events": limit, "hot_bytes": 6_000}
    rows = [Row("session", "session", window), Row("storage", storage)]
    async with open_host_at(home=home, rows=rows, env={}, strict=True) as host:
        store = host.scope.require(session_store)
        session, texts = await store.create(cwd=None, id=ONE), list[str]()
        for step, value in plan:
            if step in ("append", "large"):
                for _ in range(value):
                    texts.append(f"{len(texts)}" * (1 if step == "append" else 1_000))
                    session.append("session/renamed", {"title": texts[-1]})
            elif step == "flush":
                await session.flush()
                assert len(session.hot()) <= limit
            elif step == "reopen" and texts:
                await store.dispose(session)
                session = await store.resume(ONE)
                assert len(session.hot()) <= limit
            elif step == "read":
                begin, end = value
                found = [e async for e in session.read(LogOffset(begin), LogOffset(end))]
                assert [e.data["title"] for e in found] == texts[begin:end]
            hot = [event.data["title"] for event in session.hot()]
            assert hot == texts[session.hot_from :]
            assert session.end == len(texts)


async def test_a_session_that_is_kept_nowhere_keeps_everything(open_host: OpenHost) -> None:
    async with open_host(stored=False, window=SMALL) as host:
        session = await opened(host)
        await fill(session, 300)
        assert (session.hot_from, len(session.hot())) == (0, 300)
        fork = await host.scope.require(session_store).fork(ONE, id=TWO, cut=LogOffset(250))
        assert (fork.hot_from, len(fork.hot())) == (0, 250)


async def test_the_window_keeps_what_somebody_needs_and_no_more(
    open_host: OpenHost, plugin_of: PluginOf
) -> None:
    async with open_host(HOLDER, window=SMALL) as host:
        session, holder = await opened(host), plugin_of(host, "holder")
        holder.needs = LogOffset(5)
        await fill(session, 200)
        assert (session.hot_from, len(session.hot(LogOffset(5)))) == (5, 195)
        holder.needs = None
        await fill(session, 1)
        assert len(session.hot()) <= 40


async def test_nothing_is_dropped_while_a_holder_fails_and_its_plugin_is_named_once(
    open_host: OpenHost, plugin_of: PluginOf, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_host(HOLDER, window=SMALL) as host:
        session, holder = await opened(host), plugin_of(host, "holder")
        holder.raises = True
        await fill(session, 200)
        assert session.hot_from == 0
        holder.raises = False
        await fill(session, 1)
        assert len(session.hot()) <= 40
    assert caplog.text.count("plugin acme-holder raised") == 1


async def test_cells_fold_every_event_and_a_faulted_one_holds_nothing_back(
    open_host: OpenHost,
) -> None:
    async with open_host(*FOLDS, window=SMALL) as host:
        session, service = await opened(host), host.scope.require(projections)
        await fill(session, 300)
        assert len(session.hot()) <= 40
        assert service.state(session, "acmeCount") == folded(300)
        with pytest.raises(ProjectionFaulted):
            service.state(session, "acmeFaint")


def folded(count: int, cut: int = 0) -> dict[str, int]:
    return {"cut": cut, "count": count, "sum": sum(range(count))}


async def test_cells_that_missed_part_of_a_log_are_filled_from_storage(
    open_host: OpenHost,
) -> None:
    async with open_host(FOLDS[1], window=SMALL) as host:
        session = await opened(host)
        await fill(session, 300)
        late = await host.mount("late", [FOLDS[0]])  # rows that the session does not run on
        service = late.scope.require(projections)
        for end in (300, 320, 600):
            await fill(session, end - session.end)
            if end != 320:  # what is still in memory is caught up with at once
                with pytest.raises(ProjectionNotReady):
                    service.state(session, "acmeCount")
                await service.ready(session, ["acmeCount"])
            assert service.state(session, "acmeCount") == folded(end)
        await late.close()


async def test_a_read_beside_appends_sees_every_event_once_up_to_where_it_began(
    open_host: OpenHost,
) -> None:
    async with open_host(window=SMALL) as host:
        session = await opened(host)
        await fill(session, 100)
        for stop in (None, 90):
            end, seen = session.end, []
            async for event in session.read(LogOffset(3), None if stop is None else LogOffset(90)):
                seen.append(event.seq)
                if event.seq % 5 == 0:
                    await fill(session, 13, at_once=4)
            assert seen == list(range(3, stop or end))
        readers = [asyncio.create_task(seqs(session)) for _ in range(5)]
        end = session.end
        await asyncio.sleep(0)  # so that each reader has begun
        await fill(session, 400)
        assert [await reader for reader in readers] == [list(range(end))] * 5


async def test_a_log_that_is_no_longer_the_sessions_own_is_not_read_as_if_it_were(
    open_host: OpenHost,
) -> None:
    async with open_host(window=SMALL) as host:
        session = await opened(host)
        await fill(session, 100)
        storage = host.scope.require(session_persistence)
        other = await host.scope.require(session_store).create(cwd=None, id=TWO)
        await fill(other, 100)
        place = host.home / "sessions"
        (place / "one").rename(place / "gone")
        with pytest.raises(LookupError):
            await seqs(session)
        shutil.copytree(place / "two", place / "one")
        facts = (place / "one" / "session.json").read_bytes()
        (place / "one" / "session.json").write_bytes(facts.replace(b'"two"', b'"one"'))
        assert (await read_end(storage)) == 100
        with pytest.raises(LogChanged, match="another session is in its place"):
            await seqs(session)
        shutil.rmtree(place / "one")
        (place / "gone").rename(place / "one")
        assert await seqs(session) == list(range(100))


async def read_end(storage: Any) -> int:
    async with await storage.read(ONE) as log:
        return int(log.end)


async def conversation(session: Session, turns: int) -> None:
    for turn in range(1, turns + 1):
        session.append("turn/start", {"turn": turn})
        message = {"id": f"m{turn}", "text": f"Prompt {turn}"}
        session.append("user/message", message, surface=APPEND)
        session.append("turn/context", {"system": f"system {turn}", "tools": []})
        session.append("assistant/message", {"text": f"Answer {turn}"}, surface=APPEND)
        session.append("turn/end", {"turn": turn, "outcome": "completed"})
        if turn % 5 == 0:
            await session.flush()


async def test_a_resumed_session_is_what_it_was_and_its_log_is_never_all_in_memory(
    open_host: OpenHost, plugin_of: PluginOf
) -> None:
    async with open_host(*FOLDS, window=SMALL) as host:
        session = await opened(host)
        await conversation(session, 2000)
        history, context = session.history(), session.context()
        state = host.scope.require(projections).state(session, "acmeCount")
        title = host.scope.require(projections).snapshot(session, ["title", "sessionStats"])
    async with open_host(*FOLDS, HOLDER, window=SMALL) as host:
        resumed = await host.scope.require(session_store).resume(ONE)
        assert (resumed.history(), resumed.context()) == (history, context)
        assert len(history) == 4000
        service = host.scope.require(projections)
        assert service.state(resumed, "acmeCount") == state == folded(10_000)
        assert service.snapshot(resumed, ["title", "sessionStats"]) == title
        holder = plugin_of(host, "holder")
        assert holder.loaded == list(range(10_000))
        assert holder.longest_batch < 8_000
        assert holder.most_in_memory <= 40 + holder.longest_batch
        assert len(resumed.hot()) <= 40
        assert resumed.append("acme/note", {"text": "more"}).seq == 10_000


async def test_what_the_model_sees_keeps_nothing_else_of_the_log_in_memory(
    open_host: OpenHost,
) -> None:
    async with open_host() as host:
        session = await opened(host)
        for n in range(3_000):
            session.append("user/message", {"id": f"m{n}", "text": "short"}, surface=APPEND)
            session.append("acme/note", {"text": "x" * 3_000})
            if n % 500 == 0:
                await session.flush()
    async with open_host(window=SMALL) as host:
        tracemalloc.start()
        try:
            resumed = await host.scope.require(session_store).resume(ONE)
            loaded, _ = tracemalloc.get_traced_memory()
            assert len(resumed.history()) == 3_000
        finally:
            tracemalloc.stop()
        assert loaded < 3_000_000  # of 9 MB


async def test_a_broken_turn_longer_than_the_window_is_repaired(open_host: OpenHost) -> None:
    calls = [{"id": f"c{n}", "name": "t", "arguments": {}} for n in range(100)]
    async with open_host(window=SMALL) as host:
        session = await opened(host)
        session.append("turn/start", {"turn": 1})
        session.append("step/start", {"turn": 1, "step": 1, "model": "scripted:demo"})
        session.append("assistant/message", {"text": "", "tool_calls": calls}, surface=APPEND)
        for n in range(50):
            session.append("tool/start", {"call_id": f"c{n}", "name": "t"})
    async with open_host(window=SMALL) as host:
        resumed = await host.scope.require(session_store).resume(ONE)
        await resumed.flush()
        events = [event async for event in resumed.read(LogOffset(53))]
    assert [event.data.get("call_id") for event in events[:100]] == [f"c{n}" for n in range(100)]
    assert [event.type for event in events[100:]] == ["step/end", "turn/end"]


@pytest.mark.parametrize("source", ["live", "stored"])
async def test_a_fork_of_a_long_session_is_loaded_as_a_resumed_one_is(
    open_host: OpenHost, plugin_of: PluginOf, source: str
) -> None:
    async with open_host(*FOLDS, HOLDER, window=SMALL) as host:
        store = host.scope.require(session_store)
        session = await opened(host)
        await conversation(session, 1000)
        history = session.history()
        if source == "stored":
            await store.dispose(session)
        fork = await store.fork(ONE, id=TWO, cut=LogOffset(4_000))
        assert (fork.cut, fork.end, fork.flushed) == (4_000, 4_000, 4_000)
        assert fork.history() == history[:1600]
        assert len(fork.hot()) <= 40
        service = host.scope.require(projections)
        assert service.state(fork, "acmeCount") == folded(4_000, 4_000)
        assert plugin_of(host, "holder").loaded == list(range(4_000))
        assert await seqs(fork) == list(range(4_000))


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.crash)])
@pytest.mark.timeout(1200)
async def test_the_memory_of_a_live_session_does_not_depend_on_its_length(
    open_host: OpenHost, count: int
) -> None:
    async with open_host(*FOLDS, window={"hot_events": 1_000}) as host:
        session = await opened(host)
        await fill(session, 2_000, "x" * 200, at_once=500)
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for _ in range(count // 2_000):
                await fill(session, 2_000, "x" * 200, at_once=500)
                assert len(session.hot()) <= 1_000
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert session.end == count + 2_000
        assert host.scope.require(projections).state(session, "acmeCount") == folded(count + 2_000)
        assert grown < 3_000_000
        last = session.read(LogOffset(session.end - 3_000))
        assert sum([1 async for _ in last]) == 3_000
