"""The `subagentTiming` projection: how long a child has worked since it became what it is."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from heald_projection import Unit
from heald_session import Event
from heald_subagent.descriptor import DESCRIPTOR_TYPE

KEY = "subagentTiming"


class OpenTurn(TypedDict):
    """A turn that has not ended, in milliseconds since the epoch."""

    started_at: int
    through: int
    """When the last event of the turn was logged: it worked at least until then."""


class Timing(TypedDict):
    """What clients see."""

    settled_ms: int
    """How long the turns took that have ended, in milliseconds."""
    active: NotRequired[OpenTurn]


class TimingState(Timing):
    """The view, and whether there was a descriptor: without one nothing is counted."""

    described: bool


def _apply(state: dict[str, Any], event: Event) -> dict[str, Any]:
    """Count turns from the last descriptor on, the turn that it was logged in as a whole."""
    active = state.get("active")
    if event.type == DESCRIPTOR_TYPE:
        state = {**state, "described": True, "settled_ms": 0}
    elif event.type == "turn/start":
        return {**state, "active": {"started_at": event.time, "through": event.time}}
    elif event.type == "turn/end":
        return _ended(state, event.time)
    if active is None or active["through"] == event.time:
        return state
    return {**state, "active": {**active, "through": event.time}}


def _ended(state: dict[str, Any], time: int) -> dict[str, Any]:
    active = state.get("active")
    if active is None:
        return state
    took = max(0, time - active["started_at"]) if state["described"] else 0
    return {"described": state["described"], "settled_ms": state["settled_ms"] + took}


def _view(state: dict[str, Any]) -> dict[str, Any]:
    shown = ("settled_ms", "active") if state["described"] else ("settled_ms",)
    return {name: state[name] for name in shown if name in state}


TIMING = Unit(
    key=KEY,
    state_version=1,
    event_types=None,
    initial=lambda _header, _cut: {"described": False, "settled_ms": 0},
    apply=_apply,
    view=_view,
    state_schema=TimingState,
    view_schema=Timing,
)
