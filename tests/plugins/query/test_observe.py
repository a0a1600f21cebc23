"""Observation: one session at one cut, live or stored, and everything let go afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from heald import Cancelled, CancelToken, Host, NoConfig, Plugin, ServiceAbsent, implements
from heald_persistence import Damage, SessionDamaged, session_persistence
from heald_projection import ProjectionFaulted, Snapshot, Unit, units
from heald_projection_cache import projection_cache
from heald_query import OffsetBeyondEnd, SessionQuery, session_query
from heald_session import (
    APPEND,
    Event,
    LogOffset,
    Session,
    SessionId,
    SessionNotFound,
    session_store,
)

Install = Callable[..., None]
OpenHost = Callable[..., AbstractAsyncContextManager[Host]]
ONE = SessionId("one")
KEYS = ("title", "sessionStats")


def query_of(host: Host) -> SessionQuery:
    return host.scope.require(session_query)


async def live_session(host: Host, turns: int = 2) -> Session:
    session = await host.scope.require(session_store).create(cwd="/loom", id=ONE)
    for turn in range(1, turns + 1):
        take_turn(session, turn)
    await session.flush()
    return session


def take_turn(session: Session, turn: int) -> None:
    session.append("turn/start", {"turn": turn})
    data = {"id": f"m{turn}", "text": f"Prompt {turn}"}
    session.append("user/message", data, surface=APPEND)
    session.append("turn/end", {"turn": turn, "outcome": "completed"})


async def stored_session(host: Host, turns: int = 2) -> Session:
    session = await live_session(host, turns)
    await host.scope.require(session_store).dispose(session)
    return session


@pytest.fixture
def open_logs(monkeypatch: pytest.MonkeyPatch) -> Callable[[Host], list[object]]:
    """Keep the logs that are open: they come by `read` and go by leaving them."""
    logs: list[object] = []

    def watch(host: Host) -> list[object]:
        storage = type(host.scope.require(session_persistence))
        read = storage.read

        async def reading(self: Any, *args: Any, **kwargs: Any) -> Any:
            log = await read(self, *args, **kwargs)
            leave = type(log).__aexit__

            async def leaving(self: Any, *what: Any) -> None:
                logs.remove(self)
                await leave(self, *what)

            if not hasattr(leave, "watched"):
                vars(leaving)["watched"] = True
                monkeypatch.setattr(type(log), "__aexit__", leaving)
            logs.append(log)
            return log

        monkeypatch.setattr(storage, "read", reading)
        return logs

    return watch


async def test_live_and_stored_reads_agree_at_every_offset(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        session = await live_session(host)
        live = [await seen(host, LogOffset(at)) for at in range(session.end + 1)]
        assert await seen(host, None) == ("live", *live[-1][1:])
        await host.scope.require(session_store).dispose(session)
        cold = [await seen(host, LogOffset(at)) for at in range(session.end + 1)]
        assert [read[1:] for read in cold] == [read[1:] for read in live]
        assert {read[0] for read in live} == {"live"}
        assert {read[0] for read in cold} == {"stored"}
    async with open_rows(without=("projection-cache",)) as host:
        uncached = [await seen(host, LogOffset(at)) for at in range(session.end + 1)]
        assert uncached == cold


async def seen(host: Host, at: LogOffset | None) -> tuple[Any, ...]:
    async with query_of(host).observe_session(ONE, KEYS, at=at) as observed:
        return (
            observed.source,
            observed.header,
            observed.inherited_event_count,
            observed.end,
            observed.projections,
            [observed.state(key) for key in KEYS],
            [event.seq async for event in observed.events()],
        )


async def test_an_observation_of_a_live_session_stays_as_it_was(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        session = await live_session(host)
        async with query_of(host).observe_session(ONE, KEYS) as observed:
            before = observed.projections
            take_turn(session, 3)
            assert (observed.end, observed.projections) == (6, before)
            assert [event.seq async for event in observed.events(LogOffset(4))] == [4, 5]
            assert [event.seq async for event in observed.events(stop=LogOffset(2))] == [0, 1]


async def test_events_of_a_stored_session_are_read_by_range(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        await stored_session(host)
        async with query_of(host).observe_session(ONE, at=LogOffset(5)) as observed:
            assert observed.projections == Snapshot(4, {})
            assert [e.seq async for e in observed.events(LogOffset(3))] == [3, 4]
            assert [e.seq async for e in observed.events(stop=LogOffset(99))] == [0, 1, 2, 3, 4]


async def test_a_fork_carries_its_exact_cut_live_and_stored(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        store = host.scope.require(session_store)
        await live_session(host)
        child = await store.fork(ONE, cut=LogOffset(3), id=SessionId("child"))
        take_turn(child, 2)
        async with query_of(host).observe_session(child.id, KEYS) as observed:
            live = (observed.inherited_event_count, observed.end, observed.projections)
        await store.dispose(child)
        async with query_of(host).observe_session(child.id, KEYS) as observed:
            assert (observed.inherited_event_count, observed.end, observed.projections) == live
        assert live[:2] == (3, 6)


async def test_an_unknown_id_is_not_found_and_names_the_nearest(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        await stored_session(host)
        with pytest.raises(SessionNotFound, match="did you mean 'one'") as caught:
            async with query_of(host).observe_session(SessionId("onr")):
                pass
        assert caught.value.known == ("one",)
    async with open_rows(without=("persistence", "projection-cache")) as host:
        with pytest.raises(SessionNotFound):
            async with query_of(host).observe_session(ONE):
                pass


@pytest.mark.parametrize("at", [-1, 7])
async def test_an_offset_that_the_log_does_not_have_is_refused(
    open_rows: OpenHost, open_logs: Callable[[Host], list[object]], at: int
) -> None:
    async with open_rows() as host:
        logs = open_logs(host)
        session = await live_session(host)
        for _ in ("live", "stored"):
            with pytest.raises(OffsetBeyondEnd) as caught:
                async with query_of(host).observe_session(ONE, KEYS, at=LogOffset(at)):
                    pass
            assert caught.value.end == 6
            await host.scope.require(session_store).dispose(session)
        assert logs == []


async def test_a_log_is_let_go_on_every_path(
    open_rows: OpenHost, open_logs: Callable[[Host], list[object]]
) -> None:
    async with open_rows() as host:
        await stored_session(host)
        logs = open_logs(host)
        async with query_of(host).observe_session(ONE, KEYS):
            assert len(logs) == 1
        assert logs == []
        with pytest.raises(RuntimeError, match="mine"):
            async with query_of(host).observe_session(ONE, KEYS):
                raise RuntimeError("mine")
        assert logs == []


async def test_a_read_that_is_cancelled_lets_go_too(
    open_rows: OpenHost,
    open_logs: Callable[[Host], list[object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_rows(without=("projection-cache",)) as host:
        await stored_session(host)
        logs = open_logs(host)
        token = CancelToken()
        async with await host.scope.require(session_persistence).read(ONE) as log:
            kind = type(log)
        batches = kind.batches

        async def cancelling(self: Any, *args: Any, **kwargs: Any) -> Any:
            async for batch in batches(self, *args, **kwargs):
                yield batch
            token.cancel("enough")

        monkeypatch.setattr(kind, "batches", cancelling)
        with pytest.raises(Cancelled, match="enough"):
            async with query_of(host).observe_session(ONE, KEYS, cancel=token):
                pass
        assert logs == []
        with pytest.raises(Cancelled):
            async with query_of(host).observe_session(ONE, KEYS, cancel=token):
                pass


async def test_a_damaged_log_says_so_and_is_let_go(
    open_rows: OpenHost, open_logs: Callable[[Host], list[object]], heald_home: Path
) -> None:
    async with open_rows() as host:
        await stored_session(host)
        logs = open_logs(host)
        tail = heald_home / "sessions" / "one" / "tail.jsonl"
        lines = tail.read_bytes().splitlines(keepends=True)
        lines[3] = lines[3].replace(b"turn", b"torn")
        tail.write_bytes(b"".join(lines))
        await drop_checkpoint(host)
        with pytest.raises(SessionDamaged):
            async with query_of(host).observe_session(ONE, KEYS):
                pass
        assert logs == []


async def sealed_session(host: Host) -> None:
    """Store a session that is long enough to be sealed whole, so that its tail is empty."""
    session = await live_session(host)
    session.append("user/message", {"id": "long", "text": "y" * 100_000}, surface=APPEND)
    await host.scope.require(session_store).dispose(session)


async def test_a_checkpoint_does_not_hide_that_the_log_before_it_is_lost(
    open_rows: OpenHost, open_logs: Callable[[Host], list[object]], heald_home: Path
) -> None:
    async with open_rows() as host:
        await sealed_session(host)
        logs = open_logs(host)
        log = heald_home / "sessions" / "one" / "log.jsonl.zst"
        log.write_bytes(log.read_bytes()[:-20] + b"y" * 20)
        with pytest.raises(SessionDamaged):
            async with query_of(host).observe_session(ONE, KEYS):
                pass
        assert logs == []


async def test_a_log_whose_end_is_not_known_any_more_is_damaged_for_every_read(
    open_rows: OpenHost, open_logs: Callable[[Host], list[object]], heald_home: Path
) -> None:
    async with open_rows() as host:
        await sealed_session(host)
        logs = open_logs(host)
        (heald_home / "sessions" / "one" / "tail.jsonl").write_bytes(b"no header\n")
        with pytest.raises(SessionDamaged):  # whatever a checkpoint says
            async with query_of(host).observe_session(ONE, KEYS):
                pass
        async with query_of(host).observe_session(ONE) as observed:
            with pytest.raises(SessionDamaged):
                assert [event async for event in observed.events()]
        window = await query_of(host).read_window(ONE, LogOffset(0), LogOffset(9))
        *events, damage = window.items
        assert [event.seq for event in events if isinstance(event, Event)] == [*range(7)]
        assert isinstance(damage, Damage)
        assert logs == []


async def drop_checkpoint(host: Host) -> None:
    cache = host.scope.require(projection_cache)
    [record] = await query_of(host).list_sessions()
    assert record.header is not None
    kept = await cache.checkpoint(record.header, LogOffset(0), KEYS)
    assert kept is not None
    await cache.drop(record.header, kept)


async def test_a_checkpoint_beyond_the_log_is_dropped_and_the_log_decides(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        session = await stored_session(host)
        cache = host.scope.require(projection_cache)
        tail = heald_home / "sessions" / "one" / "tail.jsonl"
        lines = tail.read_bytes().splitlines(keepends=True)
        tail.write_bytes(b"".join(lines[:-3]))  # a power cut took the second turn
        kept = await cache.cached_snapshot(session.header, session.cut, KEYS)
        assert kept is not None  # until a log is read nobody can know
        async with query_of(host).observe_session(ONE, KEYS) as observed:
            assert observed.projections.values["sessionStats"]["turns"] == 1
        assert await cache.cached_snapshot(session.header, session.cut, KEYS) is None


async def test_a_checkpoint_of_other_events_is_dropped_and_the_log_decides(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        await stored_session(host)
    tail = heald_home / "sessions" / "one" / "tail.jsonl"
    lines = tail.read_bytes().splitlines(keepends=True)
    tail.write_bytes(b"".join(lines[:-3]))
    async with open_rows(without=("projection-cache",)) as host:
        session = await host.scope.require(session_store).resume(ONE)
        for turn in (5, 6, 7):
            session.append("turn/start", {"turn": turn})
            session.append("turn/end", {"turn": turn, "outcome": "aborted"})
        await host.scope.require(session_store).dispose(session)
    async with open_rows() as host:
        async with query_of(host).observe_session(ONE, KEYS) as observed:
            assert observed.end == 9
            assert observed.projections.values["sessionStats"]["turns"] == 4
        cache = host.scope.require(projection_cache)
        assert await cache.checkpoint(session.header, session.cut, KEYS) is None


async def test_a_fold_goes_on_from_a_checkpoint(open_rows: OpenHost, install: Install) -> None:
    folded: list[int] = []

    def note(state: int, event: Event) -> int:
        folded.append(event.seq)
        return state + 1

    install(count=declaring("count", note))
    async with open_rows() as host:
        session = await live_session(host, turns=1)
        await host.scope.require(projection_cache).save(session)
        for turn in (2, 3):
            take_turn(session, turn)
        await session.flush()
        cache = host.scope.require(projection_cache)
        kept = await cache.checkpoint(session.header, session.cut, ["count"])
        assert kept is not None
        await host.scope.require(session_store).dispose(session)
        folded.clear()
        async with query_of(host).observe_session(ONE, ["count"]) as observed:
            assert observed.state("count") == 9
        assert folded == []


def declaring(key: str, apply: Callable[[Any, Event], Any]) -> type[Plugin[Any]]:
    class Declaring(Plugin[NoConfig]):
        @classmethod
        @implements(units)
        def declare(cls) -> Iterable[Unit]:
            unit = Unit(
                key=key,
                state_version=1,
                event_types=None,
                initial=lambda *_: 0,
                apply=apply,
                view=str,
            )
            return [unit]

    return Declaring


@pytest.mark.parametrize("live", [True, False])
async def test_only_a_read_that_selects_a_faulted_key_fails(
    open_rows: OpenHost,
    install: Install,
    open_logs: Callable[[Host], list[object]],
    live: bool,  # noqa: FBT001
) -> None:
    def refuse(state: int, event: Event) -> int:
        if event.seq == 2:
            raise ValueError("not this one")
        return state

    install(faulty=declaring("faulty", refuse))
    async with open_rows() as host:
        logs = open_logs(host)
        await (live_session(host) if live else stored_session(host))
        with pytest.raises(ProjectionFaulted) as caught:
            async with query_of(host).observe_session(ONE, ["title", "faulty"]):
                pass
        assert (caught.value.key, caught.value.seq, caught.value.plugin) == ("faulty", 2, "faulty")
        async with query_of(host).observe_session(ONE, ["title"]) as observed:
            assert observed.projections.values == {"title": {"text": "Prompt 1"}}
        async with query_of(host).observe_session(ONE, ["faulty"], at=LogOffset(2)) as observed:
            assert observed.state("faulty") == 0
        assert logs == []


async def test_projections_are_required_only_when_they_are_asked_for(open_rows: OpenHost) -> None:
    async with open_rows(without=("projection", "projection-cache")) as host:
        await stored_session(host)
        async with query_of(host).observe_session(ONE) as observed:
            assert observed.end == 6
        with pytest.raises(ServiceAbsent, match="projection"):
            async with query_of(host).observe_session(ONE, KEYS):
                pass
