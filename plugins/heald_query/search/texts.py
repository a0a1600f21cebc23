"""What of an event is searched: what people, models and tools wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import msgspec

from heald_query.search.contracts import Role
from heald_session import AssistantMessage, Event, Seq, ToolResult, UserMessage

_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""What tools write to colour what they show; the letter at its end is glued to the next word."""


@attrs.frozen
class Text:
    """What was written in one event."""

    seq: Seq
    time: int
    role: Role
    text: str


def text_of(event: Event) -> Text | None:
    """Return what was written in an event; None if that is nothing, or its data does not fit."""
    teller = _TELLERS.get(event.type)
    if teller is None:
        return None
    role, kind, tell = teller
    try:
        text = tell(event.data_as(kind))
    except msgspec.DecodeError:
        return None
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    return Text(event.seq, event.time, role, text) if text and not text.isspace() else None


def _said(data: UserMessage | ToolResult) -> str:
    return data.text


def _answered(data: AssistantMessage) -> str:
    if not data.tool_calls:
        return data.text
    calls = (" ".join([call.name, *_leaves(call.arguments)]) for call in data.tool_calls)
    return "\n".join([data.text, *calls] if data.text else calls)


def _leaves(value: Any) -> Iterator[str]:
    """Yield what a model wrote into arguments, without the JSON around it."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case list() as items:
                waiting += reversed(items)
            case dict() as fields:
                waiting += reversed(fields.values())
            case other:
                yield json.dumps(other)


_TELLERS: Mapping[str, tuple[Role, type[Any], Callable[[Any], str]]] = {
    "user/message": ("user", UserMessage, _said),
    "assistant/message": ("assistant", AssistantMessage, _answered),
    "tool/result": ("tool", ToolResult, _said),
}
TYPES = frozenset(_TELLERS)
"""The types of event that have a text."""
