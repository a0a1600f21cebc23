"""Live cells: what advances, what is told, what is isolated."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

import attrs
import pytest

from heald import Host, NoConfig, Plugin, implements
from heald_projection import (
    ProjectionFaulted,
    Snapshot,
    Unit,
    projection_changed,
    projections,
    units,
)
from heald_session import (
    AppendGuard,
    AppendRefused,
    Event,
    EventType,
    Header,
    LogOffset,
    Proposal,
    Seq,
    Session,
    append_guards,
    event_appended,
    event_types,
    session_store,
)
from heald_session.testing import append_unchecked

Install = Callable[..., None]
OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


def nothing(_header: Header, _cut: LogOffset) -> list[int]:
    return []


def collect(state: list[int], event: Event) -> list[int]:
    return [*state, event.seq]


def as_it_is(state: Any) -> Any:
    return state


SEQS = Unit(
    key="seqs",
    state_version=1,
    event_types=None,
    initial=nothing,
    apply=collect,
    view=as_it_is,
)


def declaring(*declared: Unit) -> type[Plugin[Any]]:
    class Declaring(Plugin[NoConfig]):
        @classmethod
        @implements(units)
        def declare(cls) -> Iterable[Unit]:
            return declared

    return Declaring


async def new_session(host: Host) -> Session:
    return await host.scope.require(session_store).create(cwd=None)


async def test_a_snapshot_of_an_empty_log_is_of_seq_minus_one(
    install: Install, open_rows: OpenHost
) -> None:
    install(seqs=declaring(SEQS))
    async with open_rows() as host:
        session = await new_session(host)
        read = host.scope.require(projections).snapshot
        assert read(session, ["seqs"]) == Snapshot(-1, {"seqs": []})
        append_unchecked(session, "made/up", {})
        assert read(session, ["seqs"]) == Snapshot(0, {"seqs": [0]})


async def test_asking_again_gives_the_same_snapshot_until_something_has_changed(
    install: Install, open_rows: OpenHost
) -> None:
    install(seqs=declaring(SEQS))
    async with open_rows() as host:
        session, other = await new_session(host), await new_session(host)
        read = host.scope.require(projections).snapshot
        append_unchecked(session, "made/up", {})
        first = read(session, ["seqs"])
        assert read(session, ["seqs"]) is first
        append_unchecked(other, "made/up", {})
        assert read(session, ["seqs"]) is first
        assert read(session, ["seqs", "title"]).values.keys() == {"seqs", "title"}
        assert read(session, ["seqs"]) == first
        append_unchecked(session, "made/up", {})
        assert read(session, ["seqs"]) == Snapshot(1, {"seqs": [0, 1]})


async def test_no_value_is_null_and_an_unknown_or_host_only_key_is_absent(
    install: Install, open_rows: OpenHost
) -> None:
    nothing_yet = attrs.evolve(SEQS, key="nothingYet", initial=lambda *_: None)
    host_only = attrs.evolve(SEQS, key="hostOnly", view=None)
    install(mixed=declaring(nothing_yet, host_only))
    async with open_rows() as host:
        session = await new_session(host)
        service = host.scope.require(projections)
        assert service.snapshot(session, ["nothingYet", "hostOnly", "nobodys"]).values == {
            "nothingYet": None
        }
        assert service.state(session, "hostOnly") == []
        with pytest.raises(KeyError):
            service.state(session, "nobodys")


async def test_an_event_type_that_was_not_declared_never_reaches_the_unit(
    install: Install, open_rows: OpenHost
) -> None:
    install(some=declaring(attrs.evolve(SEQS, event_types=frozenset({"turn/start"}))))
    async with open_rows() as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        session.append("turn/start", {"turn": 1})
        append_unchecked(session, "turn/started", {})
        read = host.scope.require(projections).snapshot(session, ["seqs"])
        assert read == Snapshot(2, {"seqs": [1]})


async def test_an_event_under_a_former_name_of_its_type_reaches_the_unit(
    install: Install, open_rows: OpenHost
) -> None:
    class Renamed(Plugin[NoConfig]):
        @classmethod
        @implements(event_types)
        def types(cls) -> Iterable[EventType]:
            return [EventType("note/taken", dict, former=("noted",))]

        @classmethod
        @implements(units)
        def declare(cls) -> Iterable[Unit]:
            return [attrs.evolve(SEQS, event_types=frozenset({"note/taken"}))]

    install(renamed=Renamed)
    async with open_rows() as host:
        session = await new_session(host)
        append_unchecked(session, "noted", {})
        session.append("note/taken", {})
        service = host.scope.require(projections)
        assert service.state(session, "seqs") == [0, 1]
        cold = service.fold(session.header, session.cut, ["seqs"])
        assert cold.event_types == frozenset({"note/taken", "noted"})


def raising_at(seq: int, key: str = "raising") -> Unit:
    def apply(state: list[int], event: Event) -> list[int]:
        if event.seq == seq:
            raise ValueError("not this one")
        return [*state, event.seq]

    return attrs.evolve(SEQS, key=key, apply=apply)


async def test_a_unit_that_raises_is_faulted_there_and_the_others_see_every_event(
    install: Install, open_rows: OpenHost, caplog: pytest.LogCaptureFixture
) -> None:
    install(
        a=declaring(raising_at(2)),
        b=declaring(attrs.evolve(SEQS, key="before")),
        c=declaring(attrs.evolve(SEQS, key="zafter")),
    )
    async with open_rows() as host:
        session = await new_session(host)
        for _ in range(5):
            append_unchecked(session, "made/up", {})
        service = host.scope.require(projections)
        read = service.snapshot(session, ["before", "zafter"])
        assert read == Snapshot(4, {"before": [0, 1, 2, 3, 4], "zafter": [0, 1, 2, 3, 4]})
        with pytest.raises(ProjectionFaulted) as caught:
            service.snapshot(session, ["before", "raising"])
        assert (caught.value.key, caught.value.seq, caught.value.plugin) == ("raising", 2, "a")
        with pytest.raises(ProjectionFaulted):
            service.state(session, "raising")
        assert {state.key for state in service.cells(session)} >= {"before", "zafter"}
        assert "raising" not in {state.key for state in service.cells(session)}
    logged = [r for r in caplog.records if "'raising'" in r.getMessage()]
    assert [record.levelno for record in logged] == [logging.ERROR]


async def test_a_unit_that_exits_the_process_is_only_a_faulted_unit(
    install: Install, open_rows: OpenHost
) -> None:
    def leave(_state: Any, _event: Event) -> Any:
        raise SystemExit(3)

    install(leaving=declaring(attrs.evolve(SEQS, key="leaving", apply=leave), SEQS))
    async with open_rows() as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        service = host.scope.require(projections)
        assert service.state(session, "seqs") == [0]
        with pytest.raises(ProjectionFaulted, match="SystemExit: 3"):
            service.state(session, "leaving")


async def test_a_view_that_raises_fails_the_read_and_not_the_fold(
    install: Install, open_rows: OpenHost, caplog: pytest.LogCaptureFixture
) -> None:
    def only_even(state: list[int]) -> int:
        if len(state) % 2:
            raise ValueError("odd")
        return len(state)

    install(odd=declaring(attrs.evolve(SEQS, view=only_even)))
    async with open_rows() as host:
        session = await new_session(host)
        service = host.scope.require(projections)
        append_unchecked(session, "made/up", {})
        with pytest.raises(ProjectionFaulted, match="odd"):
            service.snapshot(session, ["seqs"])
        assert service.state(session, "seqs") == [0]
        append_unchecked(session, "made/up", {})
        assert service.snapshot(session, ["seqs"]) == Snapshot(1, {"seqs": 2})
    assert sum("'seqs'" in record.getMessage() for record in caplog.records) == 1


def listening(heard: list[tuple[str, Any, int]]) -> type[Plugin[Any]]:
    class Listening(Plugin[NoConfig]):
        @implements(projection_changed)
        def hear(self, session: Session, key: str, value: Any, seq: Seq) -> None:
            if key in {"seqs", "again", "turns", "hostOnly"}:
                heard.append((key, value, seq))

    return Listening


async def test_only_another_state_object_is_told(install: Install, open_rows: OpenHost) -> None:
    def keep_turns(state: list[int], event: Event) -> list[int]:
        return [*state, event.seq] if event.type == "turn/start" else state

    heard: list[tuple[str, Any, int]] = []
    turns = attrs.evolve(SEQS, key="turns", apply=keep_turns)
    quiet = attrs.evolve(SEQS, key="hostOnly", view=None)
    install(unit=declaring(turns, quiet), listener=listening(heard))
    async with open_rows(last=("listener",)) as host:
        session = await new_session(host)
        session.append("turn/start", {"turn": 1})
        append_unchecked(session, "made/up", {})
        append_unchecked(session, "turn/start", {"turn": 2})
    assert heard == [("turns", [0], 0), ("turns", [0, 2], 2)]


async def test_what_a_log_held_when_its_session_was_published_is_no_news(
    install: Install, open_rows: OpenHost
) -> None:
    heard: list[tuple[str, Any, int]] = []
    install(unit=declaring(SEQS), listener=listening(heard))
    async with open_rows(last=("listener",)) as host:
        store = host.scope.require(session_store)
        session = await new_session(host)
        session.append("turn/start", {"turn": 1})
        session.append("turn/end", {"turn": 1, "outcome": "completed"})
        heard.clear()
        child = await store.fork(session.id)
        assert host.scope.require(projections).state(child, "seqs") == [0, 1]
        assert heard == []


async def test_a_listener_of_changes_that_raises_stops_neither_the_others_nor_the_append(
    install: Install, open_rows: OpenHost, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Plugin[NoConfig]):
        @implements(projection_changed)
        def hear(self, session: Session, key: str, value: Any, seq: Seq) -> None:
            raise ValueError("deaf")

    heard: list[tuple[str, Any, int]] = []
    install(unit=declaring(SEQS), broken=Broken, listener=listening(heard))
    async with open_rows(last=("broken", "listener")) as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        assert session.end == 1
    assert heard == [("seqs", [0], 0)]
    assert "plugin broken" in caplog.text


async def test_a_read_inside_an_earlier_observer_is_of_one_cut_and_loses_no_change(
    install: Install, open_rows: OpenHost
) -> None:
    reads: list[Snapshot] = []

    class Early(Plugin[NoConfig]):
        @implements(event_appended)
        def look(self, session: Session, event: Event) -> None:
            service = session.scope.require(projections)
            reads.append(service.snapshot(session, ["seqs", "again"]))

    heard: list[tuple[str, Any, int]] = []
    install(
        unit=declaring(SEQS, attrs.evolve(SEQS, key="again")),
        early=Early,
        listener=listening(heard),
    )
    async with open_rows(first=("early",), last=("listener",)) as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        append_unchecked(session, "made/up", {})
    assert reads == [
        Snapshot(0, {"seqs": [0], "again": [0]}),
        Snapshot(1, {"seqs": [0, 1], "again": [0, 1]}),
    ]
    assert [(key, seq) for key, _, seq in heard] == [
        ("seqs", 0),
        ("again", 0),
        ("seqs", 1),
        ("again", 1),
    ]


async def test_changing_a_checkpointed_state_never_changes_a_live_cell(
    install: Install, open_rows: OpenHost
) -> None:
    nested = attrs.evolve(SEQS, initial=lambda *_: {"deep": [1]}, apply=lambda s, _: s)
    install(unit=declaring(nested))
    async with open_rows() as host:
        session = await new_session(host)
        service = host.scope.require(projections)
        [state] = [s for s in service.cells(session) if s.key == "seqs"]
        state.state["deep"].append(2)
        assert service.state(session, "seqs") == {"deep": [1]}


async def test_a_snapshot_that_a_listener_takes_between_two_changes_is_of_one_cut(
    install: Install, open_rows: OpenHost
) -> None:
    reads: list[Snapshot] = []

    class Curious(Plugin[NoConfig]):
        @implements(projection_changed)
        def hear(self, session: Session, key: str, value: Any, seq: Seq) -> None:
            if key in {"again", "seqs"}:
                reads.append(
                    session.scope.require(projections).snapshot(session, ["seqs", "again"])
                )

    install(unit=declaring(SEQS, attrs.evolve(SEQS, key="again")), curious=Curious)
    async with open_rows(last=("curious",)) as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
    assert reads == [Snapshot(0, {"seqs": [0], "again": [0]})] * 2


async def test_what_a_refused_event_would_have_changed_is_in_no_snapshot(
    install: Install, open_rows: OpenHost
) -> None:
    reads: list[Snapshot] = []

    def refuse(proposal: Proposal) -> None:
        service = proposal.session.scope.require(projections)
        reads.append(service.snapshot(proposal.session, ["seqs"]))
        raise PermissionError("not today")

    class Refusing(Plugin[NoConfig]):
        @implements(append_guards)
        def guards(self) -> Iterable[AppendGuard]:
            return [AppendGuard(refuse)]

    install(unit=declaring(SEQS), refusing=Refusing)
    async with open_rows(first=("refusing",)) as host:
        session = await new_session(host)
        with pytest.raises(AppendRefused):
            session.append("turn/start", {"turn": 1})
        assert reads == [Snapshot(-1, {"seqs": []})]
        assert host.scope.require(projections).snapshot(session, ["seqs"]) == reads[0]


async def test_the_same_object_is_no_new_value_for_a_checkpoint(
    install: Install, open_rows: OpenHost
) -> None:
    first = attrs.evolve(SEQS, apply=lambda state, event: state or [event.seq])
    install(unit=declaring(first))
    async with open_rows() as host:
        session = await new_session(host)
        service = host.scope.require(projections)
        states = []
        for _ in range(3):
            append_unchecked(session, "made/up", {})
            live = service.state(session, "seqs")
            [kept] = [state for state in service.cells(session) if state.key == "seqs"]
            states.append((id(live), kept.offset, kept.state))
        assert states == [(states[0][0], end, [0]) for end in (1, 2, 3)]


async def test_a_session_that_is_let_go_takes_its_cells_along(
    install: Install, open_rows: OpenHost
) -> None:
    alive: list[weakref.ref[Any]] = []

    class Kept(list[int]):
        pass

    def begin(_header: Header, _cut: LogOffset) -> Any:
        state = Kept()
        alive.append(weakref.ref(state))
        return state

    install(unit=declaring(attrs.evolve(SEQS, initial=begin, apply=lambda state, _: state)))
    async with open_rows() as host:
        store = host.scope.require(session_store)
        session = await new_session(host)
        assert alive[0]() == []
        await store.dispose(session)
        del session
        gc.collect()
        assert alive[0]() is None


@pytest.mark.parametrize("leaving", [KeyboardInterrupt, GeneratorExit])
async def test_an_interrupt_inside_a_fold_is_nobodys_fault_and_loses_no_event(
    install: Install, open_rows: OpenHost, leaving: type[BaseException]
) -> None:
    interrupts = [leaving]

    def interrupted(state: list[int], event: Event) -> list[int]:
        if interrupts:
            raise interrupts.pop()
        return [*state, event.seq]

    install(unit=declaring(SEQS, attrs.evolve(SEQS, key="zlater", apply=interrupted)))
    async with open_rows() as host:
        session = await new_session(host)
        with pytest.raises(leaving):
            append_unchecked(session, "made/up", {})
        append_unchecked(session, "made/up", {})
        read = host.scope.require(projections).snapshot(session, ["seqs", "zlater"])
        assert read == Snapshot(1, {"seqs": [0, 1], "zlater": [0, 1]})


async def test_a_cancellation_that_a_unit_raises_is_its_fault(
    install: Install, open_rows: OpenHost
) -> None:
    def cancelled(_state: Any, _event: Event) -> Any:
        raise asyncio.CancelledError

    install(unit=declaring(SEQS, attrs.evolve(SEQS, key="cancelled", apply=cancelled)))
    async with open_rows() as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        service = host.scope.require(projections)
        assert service.state(session, "seqs") == [0]
        with pytest.raises(ProjectionFaulted, match="CancelledError"):
            service.state(session, "cancelled")


async def test_an_error_that_cannot_be_shown_harms_no_other_unit(
    install: Install, open_rows: OpenHost
) -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not even this")

    def fail(_state: Any, _event: Event) -> Any:
        raise Unspeakable

    install(unit=declaring(attrs.evolve(SEQS, key="failing", apply=fail), SEQS))
    async with open_rows() as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        service = host.scope.require(projections)
        assert service.state(session, "seqs") == [0]
        with pytest.raises(ProjectionFaulted, match=r"Unspeakable: \(it cannot be shown\)"):
            service.state(session, "failing")
