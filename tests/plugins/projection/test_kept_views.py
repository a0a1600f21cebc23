"""What units show of states that somebody keeps: as a cell would, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypedDict

import attrs
import msgspec
import pytest

from heald import Host
from heald_projection import Unit, projections

InstallUnits = Callable[..., None]
OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


class Count(TypedDict):
    count: int


def leave(_state: Any) -> Any:
    sys.exit(3)


async def later(state: Any) -> Any:
    return state


def shown(host: Host, *texts: str | None) -> dict[str, Any]:
    return host.scope.require(projections).kept_views(["seqs", "sound", "seqs"]).of(texts)


async def test_a_view_is_made_of_what_is_kept_and_of_nothing_else(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit
) -> None:
    calls: list[Any] = []
    sound = attrs.evolve(
        seqs, key="sound", state_version=7, apply=lambda _, event: calls.append(event)
    )
    install_units("made", attrs.evolve(seqs, view=lambda state: {"count": len(state)}), sound)
    async with open_rows() as host:
        views = host.scope.require(projections).kept_views(["sound", "nobodys", "seqs", "sound"])
        assert list(views.versions.items()) == [("sound", 7), ("seqs", 1)]
        assert views.of(["[4,5]", "[1]"]) == {"sound": [4, 5], "seqs": {"count": 1}}
        assert views.of([None, "[]"]) == {"seqs": {"count": 0}}
    assert calls == []


@pytest.mark.parametrize(
    "change",
    [
        {"view": lambda _: 1 // 0},
        {"view": leave},
        {"view": tuple},
        {"view": lambda _: float("nan")},
        {"view": lambda state: later(state)},  # noqa: PLW0108 - it is not async itself
        {"view_schema": dict[str, int]},
        {"state_schema": list[str]},
        {"state_schema": list[Count]},
    ],
)
async def test_what_a_unit_cannot_show_is_left_out_and_hides_no_other(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit, change: dict[str, Any]
) -> None:
    install_units("made", attrs.evolve(seqs, **change), attrs.evolve(seqs, key="sound"))
    async with open_rows() as host:
        assert shown(host, "[1]", "[2]") == {"sound": [2]}


@pytest.mark.parametrize("text", ["", "[", "NaN", "[1", '"\\ud800"', "[" * 5000])
async def test_what_is_no_json_is_left_out(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit, text: str
) -> None:
    install_units("made", seqs, attrs.evolve(seqs, key="sound"))
    async with open_rows() as host:
        assert shown(host, text, "[2]") == {"sound": [2]}


@pytest.mark.parametrize("change", [{"view": None}, {"state_version": -1}, {"view": later}])
async def test_a_unit_without_a_view_or_that_cannot_be_used_is_not_asked_for(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit, change: dict[str, Any]
) -> None:
    install_units("made", attrs.evolve(seqs, **change), attrs.evolve(seqs, key="sound"))
    async with open_rows() as host:
        assert list(host.scope.require(projections).kept_views(["seqs", "sound"]).versions) == [
            "sound"
        ]


async def test_a_key_that_two_claim_is_not_asked_for(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit
) -> None:
    install_units("one", seqs, attrs.evolve(seqs, key="sound"))
    install_units("two", attrs.evolve(seqs, state_version=2))
    async with open_rows() as host:
        assert list(host.scope.require(projections).kept_views(["seqs", "sound"]).versions) == [
            "sound"
        ]


async def test_a_checked_schema_sees_the_state_and_not_the_view(
    install_units: InstallUnits, open_rows: OpenHost, seqs: Unit
) -> None:
    class Short(msgspec.Struct):
        count: int

        def __post_init__(self) -> None:
            if self.count > 1:
                raise RuntimeError("too many")

    view: dict[str, Any] = {"view": lambda state: state["count"] + 1, "view_schema": int}
    sound = attrs.evolve(seqs, key="sound")
    install_units("made", attrs.evolve(seqs, state_schema=Short, **view), sound)
    async with open_rows() as host:
        assert shown(host, '{"count":1}', None) == {"seqs": 2}
        assert shown(host, '{"count":2}', None) == {}
