"""A unit that breaks its promises is refused by name, and harms no other."""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypedDict

import attrs
import msgspec
import pytest

from heald import Host
from heald_projection import CellState, ProjectionFaulted, Snapshot, Unit, UnitInvalid, projections
from heald_session import Event, LogOffset, Session, session_store
from heald_session.testing import append_unchecked

InstallUnits = Callable[..., None]
OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


async def new_session(host: Host) -> Session:
    return await host.scope.require(session_store).create(cwd=None)


async def apply_later(state: Any, _event: Event) -> Any:
    return state


async def view_later(state: Any) -> Any:
    return state


class Later:
    async def __call__(self, state: Any, _event: Event) -> Any:
        return state


class Counted(TypedDict):
    count: int


class Checking(msgspec.Struct):
    count: int

    def __post_init__(self) -> None:
        if self.count > 1:
            raise RuntimeError("too many")


class Colour(enum.Enum):
    RED = "red"


def cyclic(*_: Any) -> Any:
    state: list[Any] = []
    state.append(state)
    return state


def always(value: Any) -> Callable[..., Any]:
    return lambda *_: value


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"apply": apply_later}, "apply is async"),
        ({"apply": partial(apply_later)}, "apply is async"),
        ({"apply": Later()}, "apply is async"),
        ({"view": view_later}, "view is async"),
        ({"initial": apply_later}, "initial is async"),
        ({"initial": always((1, 2))}, "not plain JSON"),
        ({"initial": always({1: 2})}, "not plain JSON"),
        ({"initial": always(float("nan"))}, "not plain JSON"),
        ({"initial": always(b"bytes")}, "not plain JSON"),
        ({"initial": always(Colour.RED)}, "not plain JSON"),
        ({"initial": always("\ud800")}, "not plain JSON"),
        ({"initial": cyclic}, "not plain JSON"),
        ({"initial": lambda *_: 1 // 0}, "ZeroDivisionError"),
        ({"apply": always({1, 2})}, "not plain JSON"),
        ({"apply": always(Checking(1))}, "not plain JSON"),
        ({"state_version": -1}, "state_version is -1"),
        ({"state_version": True}, "state_version is True"),
        ({"state_version": 1.5}, "state_version is 1.5"),
        ({"state_schema": Counted, "initial": always(7)}, "does not fit its schema: Expected"),
        (
            {"state_schema": Counted, "initial": always({"count": "1"})},
            r"got `str` - at `\$.count`",
        ),
        (
            {"state_schema": Checking, "initial": always({"count": 2})},
            "does not fit its schema: too many",
        ),
        ({"state_schema": dict[str, int], "apply": always([])}, "its state does not fit"),
        ({"state_schema": 5}, "state_schema is no type"),
        ({"view_schema": 5}, "view_schema is no type"),
    ],
)
async def test_a_unit_that_cannot_be_used_is_refused_by_name_and_harms_no_other(
    install_units: InstallUnits,
    open_rows: OpenHost,
    seqs: Unit,
    change: dict[str, Any],
    reason: str,
) -> None:
    install_units("broken", attrs.evolve(seqs, **change), attrs.evolve(seqs, key="sound"))
    async with open_rows() as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        service = host.scope.require(projections)
        for read in (service.snapshot, lambda session, _keys: service.state(session, "seqs")):
            with pytest.raises(UnitInvalid, match=reason) as caught:
                read(session, ["seqs"])
            assert caught.value.key == "seqs"
        cold = service.fold(session.header, session.cut, ["seqs", "sound"])
        for event in session.hot():
            cold.feed(event)
        with pytest.raises(UnitInvalid, match=reason):
            cold.state("seqs")
        assert cold.state("sound") == service.state(session, "sound") == [0]
        assert "seqs" not in {state.key for state in service.cells(session)}


async def test_a_view_that_breaks_its_promise_fails_the_read_and_not_the_state(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit
) -> None:
    views: list[Any] = [{1, 2}, {"count": "1"}, (1,), 7]
    for n, value in enumerate(views):
        view = attrs.evolve(seqs, key=f"view{n}", view=always(value), view_schema=Counted)
        install_units(f"unit{n}", view)
    async with open_rows() as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        service = host.scope.require(projections)
        for n in range(len(views)):
            with pytest.raises(UnitInvalid, match=r"its view (is not plain JSON|does not fit)"):
                service.snapshot(session, [f"view{n}"])
            assert service.state(session, f"view{n}") == [0]


async def test_a_fold_that_returns_what_an_async_function_made_is_faulted(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit
) -> None:
    def returns_a_coroutine(state: Any, event: Event) -> Any:
        return apply_later(state, event)

    install_units("unit", attrs.evolve(seqs, apply=returns_a_coroutine))
    async with open_rows() as host:
        session = await new_session(host)
        append_unchecked(session, "made/up", {})
        with pytest.raises(ProjectionFaulted, match="awaitable"):
            host.scope.require(projections).state(session, "seqs")


async def test_a_view_that_returns_what_an_async_function_made_is_faulted(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit
) -> None:
    def returns_a_coroutine(state: Any) -> Any:
        return view_later(state)

    install_units("unit", attrs.evolve(seqs, view=returns_a_coroutine))
    async with open_rows() as host:
        session = await new_session(host)
        service = host.scope.require(projections)
        with pytest.raises(ProjectionFaulted, match="awaitable"):
            service.snapshot(session, ["seqs"])
        assert service.state(session, "seqs") == []


async def test_a_state_is_checked_once_however_often_it_is_read(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit
) -> None:
    checked: list[int] = []

    class Counting(msgspec.Struct, array_like=True):
        first: int = 0

        def __post_init__(self) -> None:
            checked.append(self.first)

    keeping = attrs.evolve(seqs, view=None, state_schema=Counting, apply=lambda s, e: s or [e.seq])
    install_units("unit", keeping)
    async with open_rows() as host:
        session = await new_session(host)
        service = host.scope.require(projections)
        for _ in range(5):
            append_unchecked(session, "made/up", {})
            service.state(session, "seqs")
            service.snapshot(session, ["seqs"])
            service.cells(session)
    assert len(checked) == 2  # the initial state, and the one after the first event


async def test_a_fold_goes_on_from_a_state_only_if_key_version_and_schema_fit(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit
) -> None:
    install_units("unit", attrs.evolve(seqs, state_schema=list[int]))
    async with open_rows() as host:
        session = await new_session(host)
        for _ in range(3):
            append_unchecked(session, "made/up", {})
        service = host.scope.require(projections)

        def folded(*base: CellState) -> tuple[int, Any]:
            fold = service.fold(session.header, session.cut, ["seqs"], base)
            for event in session.hot(fold.start):
                fold.feed(event)
            assert fold.snapshot(LogOffset(3)) == Snapshot(2, {"seqs": fold.state("seqs")})
            return fold.start, fold.state("seqs")

        two = LogOffset(2)
        assert folded(CellState("seqs", 1, two, [7])) == (2, [7, 2])
        for misfit in (
            CellState("others", 1, two, [7]),
            CellState("seqs", 2, two, [7]),
            CellState("seqs", 1, two, ["7"]),
            CellState("seqs", 1, two, {}),
            CellState("seqs", 1, LogOffset(-1), [7]),
        ):
            assert folded(misfit) == (0, [0, 1, 2])
