"""Live cells: what advances, what is told, what is isolated."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

import attrs
import pytest

from heald import Discovery, Host, NoConfig, Plugin, VocabularyConflict, implements
from heald_projection import (
    ProjectionFaulted,
    ProjectionNotReady,
    Snapshot,
    Unit,
    UnitInvalid,
    projection_changed,
    projections,
    units,
)
from heald_session import (
    Event,
    EventType,
    Header,
    LogOffset,
    Seq,
    Session,
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
        assert service.faulted(session) == {"raising"}
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
        assert service.faulted(session) == {"leaving"}


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
            if key != "sessionStats":
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


async def test_one_key_and_version_of_two_plugins_is_one_unit(
    install: Install, open_rows: OpenHost
) -> None:
    install(one=declaring(SEQS), two=declaring(attrs.evolve(SEQS, view=as_it_is)))
    async with open_rows(last=("two",)) as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        assert host.scope.require(projections).state(session, "seqs") == [0]


async def apply_later(state: Any, _event: Event) -> Any:
    return state


async def view_later(state: Any) -> Any:
    return state


half: Any = 1.5


def returns_a_coroutine(state: Any, event: Event) -> Any:
    return apply_later(state, event)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (attrs.evolve(SEQS, apply=apply_later), "apply is async"),
        (attrs.evolve(SEQS, view=view_later), "view is async"),
        (attrs.evolve(SEQS, initial=lambda *_: (1, 2)), "not plain JSON"),
        (attrs.evolve(SEQS, initial=lambda *_: {1: 2}), "not plain JSON"),
        (attrs.evolve(SEQS, initial=lambda *_: float("nan")), "not plain JSON"),
        (attrs.evolve(SEQS, initial=lambda *_: 1 // 0), "ZeroDivisionError"),
        (attrs.evolve(SEQS, apply=lambda *_: {1, 2}), "not plain JSON"),
        (attrs.evolve(SEQS, state_version=-1), "state_version is -1"),
        (attrs.evolve(SEQS, state_version=True), "state_version is True"),
        (attrs.evolve(SEQS, state_version=half), "state_version is 1.5"),
    ],
)
async def test_a_unit_that_cannot_be_used_is_refused_by_name_and_harms_no_other(
    install: Install, open_rows: OpenHost, wrong: Unit, reason: str
) -> None:
    install(unit=declaring(wrong, attrs.evolve(SEQS, key="sound")))
    async with open_rows() as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        service = host.scope.require(projections)
        with pytest.raises(UnitInvalid, match=reason) as caught:
            service.snapshot(session, ["seqs"])
        assert caught.value.key == "seqs"
        cold = service.fold(session.header, session.cut, ["seqs", "sound"])
        for event in session.hot():
            cold.feed(event)
        with pytest.raises(UnitInvalid, match=reason):
            cold.state("seqs")
        assert cold.state("sound") == service.state(session, "sound") == [0]
        assert "seqs" not in {state.key for state in service.cells(session)}


async def test_a_plain_fold_that_returns_a_coroutine_is_faulted(
    install: Install, open_rows: OpenHost
) -> None:
    install(unit=declaring(attrs.evolve(SEQS, apply=returns_a_coroutine)))
    async with open_rows() as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        with pytest.raises(ProjectionFaulted, match="awaitable"):
            host.scope.require(projections).state(session, "seqs")


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


async def test_a_unit_that_becomes_known_late_catches_up_before_it_answers(
    install: Install, open_rows: OpenHost
) -> None:
    async with open_rows() as host:
        session = await new_session(host)
        service = host.scope.require(projections)
        append_unchecked(session, "made/up", {})
        assert service.snapshot(session, ["seqs"]) == Snapshot(0, {})
        install(late=declaring(SEQS))
        host.discovery = Discovery()  # as when rows change after an installation
        host.revision += 1
        append_unchecked(session, "made/up", {})
        with pytest.raises(ProjectionNotReady):
            service.snapshot(session, ["seqs"])
        await service.ready(session, ["seqs", "nobodys"])
        append_unchecked(session, "made/up", {})
        assert service.snapshot(session, ["seqs"]) == Snapshot(2, {"seqs": [0, 1, 2]})


async def test_a_unit_that_comes_to_be_declared_in_two_versions_is_no_longer_read(
    install: Install, open_rows: OpenHost
) -> None:
    install(old=declaring(SEQS))
    async with open_rows() as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        service = host.scope.require(projections)
        assert service.state(session, "seqs") == [0]
        install(new=declaring(attrs.evolve(SEQS, state_version=2)))
        host.discovery = Discovery()
        host.revision += 1
        with pytest.raises(VocabularyConflict):
            service.snapshot(session, ["seqs"])
