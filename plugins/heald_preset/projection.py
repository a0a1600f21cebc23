"""The projection `agentPreset`: which preset a session runs on, live or cold."""

from __future__ import annotations

from typing import TypedDict

import msgspec

from heald_preset.events import AGENT_PRESET_SELECTED, AgentPresetSelected
from heald_projection import Unit
from heald_session import Event, Header, LogOffset


class AgentPreset(TypedDict):
    """The unit's state; None when the session runs on the host's rows alone."""

    preset: str | None


def _initial(header: Header, cut: LogOffset) -> AgentPreset:  # noqa: ARG001 - every unit is given it
    return {"preset": header.agent_preset}


def _apply(state: AgentPreset, event: Event) -> AgentPreset:
    try:
        selected = event.data_as(AgentPresetSelected)
    except msgspec.ValidationError:  # written under another schema: it chose nothing we can name
        return state
    return state if selected.preset == state["preset"] else {"preset": selected.preset}


def _view(state: AgentPreset) -> str | None:
    return state["preset"]


AGENT_PRESET = Unit(
    key="agentPreset",
    state_version=1,
    event_types=frozenset({AGENT_PRESET_SELECTED.name}),
    initial=_initial,
    apply=_apply,
    view=_view,
    state_schema=AgentPreset,
    view_schema=str | None,
)
