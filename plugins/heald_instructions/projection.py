"""The unit `instructionFiles`: what each file held when a session last read it."""

from __future__ import annotations

import msgspec

from heald_instructions.events import INSTRUCTIONS_READ, InstructionsRead
from heald_projection import Unit
from heald_session import Event, Header, LogOffset

Digests = dict[str, str | None]
"""Digests by path; None is a file of which nothing was read."""


def _initial(header: Header, cut: LogOffset) -> Digests:  # noqa: ARG001 - every unit is given it
    return {}


def _apply(state: Digests, event: Event) -> Digests:
    try:
        read = event.data_as(InstructionsRead)
    except msgspec.ValidationError:  # written under another schema: we cannot say what was read
        return state
    return {**state, read.path: read.digest}


INSTRUCTION_FILES = Unit(
    key="instructionFiles",
    state_version=1,
    event_types=frozenset({INSTRUCTIONS_READ.name}),
    initial=_initial,
    apply=_apply,
    state_schema=Digests,
)
