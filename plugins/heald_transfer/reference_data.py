"""The data of reference events, as far as it means something here; other members are ignored."""

from __future__ import annotations

from typing import Any

import msgspec


class Turn(msgspec.Struct, frozen=True):
    """`turn/start`."""

    turn: int


class Step(msgspec.Struct, frozen=True):
    """`step/start` and `step/end`."""

    turn: int
    step: int


class TurnEnd(msgspec.Struct, frozen=True):
    """`turn/end`; the reason's `kind` says how."""

    turn: int
    reason: dict[str, Any]


class UserMessage(msgspec.Struct, frozen=True):
    """`user/message`: blocks of text and other content, and who wrote it."""

    id: str
    content: list[dict[str, Any]]
    source: dict[str, Any] = {}


class Answer(msgspec.Struct, frozen=True):
    """What a model answered: blocks of text, reasoning and tool calls."""

    content: list[dict[str, Any]]
    source: dict[str, Any] = {}


class Usage(msgspec.Struct, frozen=True, rename="camel"):
    """Tokens of one request."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0


class AssistantMessage(msgspec.Struct, frozen=True):
    """`assistant/message`."""

    message: Answer
    usage: Usage | None = None


class Call(msgspec.Struct, frozen=True, rename="camel"):
    """`tool/call`: a tool is about to run."""

    call_id: str
    name: str


class ResultBlock(msgspec.Struct, frozen=True, rename="camel"):
    """What one call gave."""

    tool_call_id: str
    content: list[dict[str, Any]]
    is_error: bool = False


class ResultMessage(msgspec.Struct, frozen=True):
    """The one block of a result."""

    content: tuple[ResultBlock]


class ToolResult(msgspec.Struct, frozen=True):
    """`tool/result`."""

    message: ResultMessage


class Tool(msgspec.Struct, frozen=True):
    """A tool as the model sees it."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class Request(msgspec.Struct, frozen=True):
    """What a request carries besides messages."""

    config: dict[str, Any] = {}
    system: str = ""
    tools: list[Tool] = []


class RequestHeader(msgspec.Struct, frozen=True):
    """`request/header`."""

    header: Request


class Splice(msgspec.Struct, frozen=True, rename="camel"):
    """`agent/inbox/spliced`: one lane of the inbox changed, as a list is spliced."""

    target: str
    start: int
    removed_count: int = 0
    inserted: list[Any] = []
