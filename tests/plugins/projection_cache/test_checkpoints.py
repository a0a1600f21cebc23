"""When states are kept, for which log they are served, and when they are dropped."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import msgspec
import pytest

from heald import Cancelled, CancelToken, Host, NoConfig, Plugin, implements
from heald_persistence import SessionNotSaved
from heald_projection import Snapshot, Unit, units
from heald_projection_cache import Checkpoint, ProjectionCache, projection_cache
from heald_query import session_query
from heald_session import APPEND, Event, Header, LogOffset, Session, SessionId, session_store
from heald_sqlite import DerivedDatabase

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]
KEYS = ("title", "sessionStats")


def cache_of(host: Host) -> ProjectionCache:
    return host.scope.require(projection_cache)


async def new_session(host: Host) -> Session:
    return await host.scope.require(session_store).create(cwd="/loom", id=SessionId("one"))


def take_turn(session: Session, turn: int = 1, text: str = "Count the files") -> None:
    session.append("turn/start", {"turn": turn})
    session.append("user/message", {"id": f"m{turn}", "text": text}, surface=APPEND)
    session.append("turn/end", {"turn": turn, "outcome": "completed"})


async def kept(host: Host, session: Session, *keys: str) -> Snapshot | None:
    return await cache_of(host).cached_snapshot(session.header, session.cut, keys or KEYS)


async def saved(session: Session) -> None:
    """Wait until the row has written what a turn's end asked for."""
    name = f"checkpoint of {session.id}"
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == name))


async def test_states_are_kept_when_a_turn_ends(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        assert await kept(host, session) is None
        take_turn(session)
        await saved(session)
        found = await kept(host, session)
        assert found is not None
        assert found.as_of_seq == 2
        assert found.values["title"] == {"text": "Count the files"}
        assert session.flushed == 3


async def test_states_are_kept_when_a_session_closes(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        session.append("turn/start", {"turn": 1})
        await host.scope.require(session_store).dispose(session)
        found = await kept(host, session)
        assert found is not None
        assert found.values["sessionStats"]["turns"] == 1


async def test_states_are_kept_when_the_host_stops(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        session.append("turn/start", {"turn": 1})
        header = session.header
    async with open_rows() as host:
        found = await cache_of(host).cached_snapshot(header, LogOffset(0), KEYS)
        assert found is not None
        assert found.as_of_seq == 0


async def test_a_session_that_is_kept_nowhere_is_not_checkpointed(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows(without="persistence") as host:
        session = await new_session(host)
        take_turn(session)
        await cache_of(host).save(session)
        assert await kept(host, session) is None
    assert not (heald_home / "cache").exists()


async def test_what_cannot_be_made_durable_is_not_kept(
    open_rows: OpenHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        session.append("turn/start", {"turn": 1})

        async def full(_self: object) -> None:
            raise SessionNotSaved("one", "the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(type(session), "flush", full)
            await cache_of(host).save(session)
        assert await kept(host, session) is None
        assert "not being saved" in caplog.text
        await cache_of(host).save(session)
        assert await kept(host, session) is not None


def changed(header: Header, **facts: Any) -> Header:
    return msgspec.structs.replace(header, **facts)


@pytest.mark.parametrize(
    ("facts", "cut"),
    [
        ({"id": SessionId("two")}, 0),
        ({"log_id": "another"}, 0),
        ({"version": 2}, 0),
        ({"created_at": 1}, 0),
        ({"cwd": "/elsewhere"}, 0),
        ({"cwd": None}, 0),
        ({"is_seeded": True}, 0),
        ({}, 1),
    ],
)
async def test_states_of_another_log_are_not_served(
    open_rows: OpenHost, facts: dict[str, Any], cut: int
) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        take_turn(session)
        cache = cache_of(host)
        await cache.save(session)
        header = changed(session.header, **facts)
        assert await cache.cached_snapshot(header, LogOffset(cut), KEYS) is None
        assert await cache.checkpoint(header, LogOffset(cut), KEYS) is None
        assert await kept(host, session) is not None


async def test_a_key_that_is_not_kept_is_absent(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        take_turn(session)
        await cache_of(host).save(session)
        assert await kept(host, session, "nobodys") == Snapshot(2, {})


async def test_many_logs_are_asked_for_in_one_hop_and_those_without_states_are_absent(
    open_rows: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_rows() as host:
        store = host.scope.require(session_store)
        logs = []
        for number in range(5):
            session = await store.create(cwd="/loom", id=SessionId(f"s{number}"))
            take_turn(session, text=f"Count {number}")
            logs.append((session.header, session.cut))
            await store.dispose(session)
        other = changed(logs[1][0], log_id="another")
        absent = changed(logs[0][0], id=SessionId("absent"))
        asked = [logs[0], (other, LogOffset(0)), logs[2], (absent, LogOffset(0))]
        hops = []
        read = DerivedDatabase.read

        async def counted(database: DerivedDatabase, work: Any) -> Any:
            hops.append(work)
            return await read(database, work)

        monkeypatch.setattr(DerivedDatabase, "read", counted)
        found = await cache_of(host).cached_snapshots(asked, ["title", "nobodys"])
        assert found == {
            "s0": Snapshot(2, {"title": {"text": "Count 0"}}),
            "s2": Snapshot(2, {"title": {"text": "Count 2"}}),
        }
        assert len(hops) == 1
        assert await cache_of(host).cached_snapshots(logs[:1], []) == {"s0": Snapshot(2, {})}
        assert await cache_of(host).cached_snapshots([], KEYS) == {}


async def test_a_cancelled_read_says_so(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        token = CancelToken()
        token.cancel("enough")
        with pytest.raises(Cancelled):
            await cache_of(host).cached_snapshot(session.header, session.cut, KEYS, cancel=token)


async def test_states_that_a_log_does_not_bear_out_are_dropped_and_nothing_newer_is(
    open_rows: OpenHost,
) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        take_turn(session)
        cache = cache_of(host)
        await cache.save(session)
        old = await cache.checkpoint(session.header, session.cut, KEYS)
        assert old is not None
        take_turn(session, 2)
        await cache.save(session)
        await cache.drop(session.header, old)
        new = await cache.checkpoint(session.header, session.cut, KEYS)
        assert new is not None
        assert new.offset == 6
        await cache.drop(session.header, new)
        assert await kept(host, session) is None


async def test_a_kept_state_is_not_the_live_one(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        take_turn(session)
        cache = cache_of(host)
        await cache.save(session)
        first = await cache.checkpoint(session.header, session.cut, KEYS)
        assert first is not None
        for state in first.states:
            state.state.clear()
        again = await cache.checkpoint(session.header, session.cut, KEYS)
        assert again is not None
        assert all(state.state for state in again.states)


RAISES_AT: list[int] = []


def fold(state: list[int], event: Event) -> list[int]:
    if event.seq in RAISES_AT:
        raise ValueError("not this one")
    return [*state, event.seq]


SEQS = Unit(
    key="seqs",
    state_version=1,
    event_types=None,
    initial=lambda *_: [],
    apply=fold,
    view=lambda state: state,
    state_schema=list[int],
)


async def view_later(state: list[int]) -> list[int]:
    return state


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Unit], None]:
    """Install a plugin that declares a unit in place of the one it declared before."""
    site = tmp_path / "site"
    facts = site / "heald_test_seqs-1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: heald-test-seqs\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[heald.plugins]\nseqs = heald_test_seqs:Made\n")
    monkeypatch.syspath_prepend(str(site))
    RAISES_AT.clear()

    def declare(unit: Unit) -> None:
        class Declaring(Plugin[NoConfig]):
            @classmethod
            @implements(units)
            def units(cls) -> Iterable[Unit]:
                return [unit]

        module = ModuleType("heald_test_seqs")
        vars(module)["Made"] = Declaring
        monkeypatch.setitem(sys.modules, module.__name__, module)

    return declare


async def test_a_faulted_cell_is_not_kept_and_its_old_row_is_dropped(
    open_rows: OpenHost, declare: Callable[[Unit], None]
) -> None:
    declare(SEQS)
    async with open_rows() as host:
        session = await new_session(host)
        take_turn(session)
        await cache_of(host).save(session)
        assert await kept(host, session, "seqs", "title") == Snapshot(
            2, {"seqs": [0, 1, 2], "title": {"text": "Count the files"}}
        )
        RAISES_AT.append(4)
        take_turn(session, 2)
        await cache_of(host).save(session)
        found = await kept(host, session, "seqs", "title")
        assert found == Snapshot(5, {"title": {"text": "Count the files"}})


@pytest.mark.parametrize(
    "other",
    [
        attrs.evolve(SEQS, state_version=2, initial=lambda *_: ["anew"]),
        attrs.evolve(SEQS, state_schema=dict[str, int]),
        attrs.evolve(SEQS, view=None),
        attrs.evolve(SEQS, view=lambda _: 1 // 0),
        attrs.evolve(SEQS, state_schema=object()),
        attrs.evolve(SEQS, view=view_later),
        attrs.evolve(SEQS, view_schema=dict[str, int]),
        attrs.evolve(SEQS, view=tuple),
    ],
    ids=[
        "version",
        "schema",
        "host-only",
        "view raises",
        "no schema",
        "view waits",
        "view fits not",
        "view no JSON",
    ],
)
async def test_a_state_that_the_unit_of_today_cannot_show_is_absent(
    open_rows: OpenHost, declare: Callable[[Unit], None], other: Unit
) -> None:
    declare(SEQS)
    async with open_rows() as host:
        session = await new_session(host)
        take_turn(session)
    declare(other)
    async with open_rows() as host:
        found = await kept(host, session, "seqs", "title")
        assert found == Snapshot(2, {"title": {"text": "Count the files"}})


async def test_a_fold_does_not_go_on_from_a_state_of_another_version(
    open_rows: OpenHost, declare: Callable[[Unit], None]
) -> None:
    declare(SEQS)
    async with open_rows() as host:
        session = await new_session(host)
        take_turn(session)
    declare(attrs.evolve(SEQS, state_version=2, initial=lambda *_: [-1]))
    async with open_rows() as host:
        query = host.scope.require(session_query)
        async with query.observe_session(session.id, ["seqs"]) as observed:
            assert observed.projections == Snapshot(2, {"seqs": [-1, 0, 1, 2]})


async def test_a_checkpoint_follows_exactly_one_event(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        take_turn(session)
        await cache_of(host).save(session)
        checkpoint = await cache_of(host).checkpoint(session.header, session.cut, KEYS)
        assert checkpoint is not None
        first, _, last = session.hot()
        assert checkpoint.follows(last)
        assert not checkpoint.follows(first)
        assert not checkpoint.follows(msgspec.structs.replace(last, time=last.time + 1))
        other = msgspec.Raw(b'{"turn":1,"outcome":"aborted"}')
        assert not checkpoint.follows(msgspec.structs.replace(last, encoded=other))
        assert not Checkpoint(LogOffset(9), checkpoint.witness, ()).follows(last)
