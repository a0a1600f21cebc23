"""The events of agents: what a person was asked and answered, and which model was chosen."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from heald_session import EventType

AskKind = Literal["question", "approval"]
AskOutcome = Literal["answered", "approved", "denied", "expired", "cancelled"]


class _Data(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Data of an event: absent means default, and nothing unknown is written."""


class AskOpened(_Data, frozen=True):
    """`ask/opened`: a person is asked something; until it is decided nothing else is."""

    id: str
    kind: AskKind
    text: str
    deadline: int
    """When it expires, in milliseconds since the epoch."""
    options: list[str] = []
    """Answers to a question that suggest themselves; another one is as good."""
    action: Any = None
    """What an approval is for, as JSON; the decision holds for this and for nothing else."""


class AskDecided(_Data, frozen=True):
    """`ask/decided`: what came of an ask.

    A question is answered, an approval approved, and either may be denied. One that nobody decided
    is expired, and one that the asker no longer waits for is cancelled.
    """

    ask: str
    outcome: AskOutcome
    by: str
    """Who decided: what the one who answered is called, or `deadline`, `nobody`, `restart`,
    `asker`."""
    answer: str | None = None
    """What was answered; with an approval or a denial, what was remarked."""
    reason: str | None = None
    """Why nobody answered, where nobody did."""


class ModelSelected(_Data, frozen=True):
    """`model/selected`: a person chose the session's model, as `adapter:model`."""

    model: str


ASK_OPENED = EventType("ask/opened", AskOpened)
ASK_DECIDED = EventType("ask/decided", AskDecided)
MODEL_SELECTED = EventType("model/selected", ModelSelected)
EVENT_TYPES = (ASK_OPENED, ASK_DECIDED, MODEL_SELECTED)
