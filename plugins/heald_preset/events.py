"""The event that says which preset a session runs on from there on."""

from __future__ import annotations

import msgspec

from heald_session import EventType


class AgentPresetSelected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`agent-preset/selected`: the session runs on another preset than before."""

    preset: str


AGENT_PRESET_SELECTED = EventType("agent-preset/selected", AgentPresetSelected)
