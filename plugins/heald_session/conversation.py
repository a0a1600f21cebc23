"""The conversation vocabulary: the data of turns, steps, messages and tool calls.

Whoever drives a model writes these events; this package owns what they mean: what the model sees of
them (`heald_session.history`), where a log may be forked, and how a broken turn is repaired.
"""

from __future__ import annotations

from typing import Any, Literal

import attrs
import msgspec

from heald_session.positions import Seq


class _Data(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Data of an event: absent means default, and nothing unknown is written."""


class TurnStart(_Data, frozen=True):
    """`turn/start`: a turn opened, before its first input was claimed; numbers start at 1."""

    turn: int


class TurnEnd(_Data, frozen=True):
    """`turn/end`: nothing is owed any more."""

    turn: int
    outcome: Literal["completed", "aborted", "failed"]
    cause: str | None = None
    """Why it was aborted or how it failed; absent when completed."""


class ToolSchema(_Data, frozen=True):
    """A tool as the model sees it; `parameters` is JSON Schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class TurnContext(_Data, frozen=True):
    """`turn/context`: what every request carries besides messages, from here on."""

    system: str
    tools: list[ToolSchema]


class StepStart(_Data, frozen=True):
    """`step/start`: one model request and its tools; `model` is `adapter:name`."""

    turn: int
    step: int
    model: str


class StepEnd(_Data, frozen=True):
    """`step/end`: the request was answered and every tool call has a result."""

    turn: int
    step: int


class InboxMessage(_Data, frozen=True):
    """`inbox/message`: accepted, not yet delivered; `user/message` with the same id delivers it."""

    id: str
    text: str
    lane: Literal["queued", "steer"] = "queued"
    """`queued` opens the next turn, `steer` joins the running one at its next step."""
    sender: str | None = None
    """The session that sent it; absent for a person."""


class UserMessage(_Data, frozen=True):
    """`user/message`: input the model sees, appended to the surface."""

    id: str
    text: str
    sender: str | None = None


class ToolCall(_Data, frozen=True):
    """A call the model asked for; `arguments` is whatever JSON the model wrote."""

    id: str
    name: str
    arguments: Any


class Usage(_Data, frozen=True):
    """Tokens of one model request."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """How many of the input tokens the provider had cached."""


class AssistantMessage(_Data, frozen=True):
    """`assistant/message`: what the model answered; one for each request that was answered."""

    text: str
    tool_calls: list[ToolCall] = []
    finish: str = "stop"
    """Why the model stopped: stop, tool_calls, length, interrupted, or the provider's own word."""
    usage: Usage | None = None


class ToolStart(_Data, frozen=True):
    """`tool/start`: the tool's body is about to run; without it the call never ran."""

    call_id: str
    name: str


class ToolResult(_Data, frozen=True):
    """`tool/result`: what the model gets for a call, appended to the surface."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


class HistorySummary(_Data, frozen=True):
    """`history/summary`: replaces a range of the surface; people still read what it replaced.

    The model reads it as a user message of this id and text.
    """

    id: str
    text: str
    usage: Usage | None = None
    """What the request that it is the answer to came to."""


Message = UserMessage | AssistantMessage | ToolResult
"""What a model request is made of."""


@attrs.frozen
class Shown:
    """A place on the surface, and what the model is shown there: None if it cannot be read."""

    seq: Seq
    message: Message | None
