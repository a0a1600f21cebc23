"""What every list of sessions shows: the `title` and the `sessionStats` projections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict, TypeVar

import msgspec

from heald_projection import Unit
from heald_session.conversation import AssistantMessage, ToolStart, UserMessage
from heald_session.events import Event
from heald_session.header import Header
from heald_session.naming import SessionRenamed
from heald_session.positions import LogOffset

TITLE_LENGTH: Final = 80
"""How many characters of a name or a first prompt a title keeps."""

T = TypeVar("T")


class Title(TypedDict):
    """What a person called the session, else the first line of the first prompt that has one."""

    text: str


class SessionStats(TypedDict):
    """What a session came to so far, inherited events included."""

    turns: int
    steps: int
    tools: dict[str, int]
    """How often each tool was run; a call that was refused before it ran does not count."""
    input_tokens: int
    output_tokens: int
    last_activity: int | None
    """When the conversation last moved, in milliseconds since the epoch."""


def _untitled(_header: Header, _cut: LogOffset) -> Title | None:
    return None


def _titled(state: Title | None, event: Event) -> Title | None:
    if event.type == "session/renamed":
        renamed = _data(event, SessionRenamed)
        line = _first_line(renamed.title) if renamed is not None else None
    elif state is None:
        prompt = _data(event, UserMessage)
        line = _first_line(prompt.text) if prompt is not None else None
    else:
        return state
    return {"text": line} if line is not None else state


def _first_line(text: str) -> str | None:
    """Return the first line that is not blank, cut to a title's length."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), None)
    if line is None or len(line) <= TITLE_LENGTH:
        return line
    return line[: TITLE_LENGTH - 1] + "…"


def _nothing_yet(_header: Header, _cut: LogOffset) -> SessionStats:
    return {
        "turns": 0,
        "steps": 0,
        "tools": {},
        "input_tokens": 0,
        "output_tokens": 0,
        "last_activity": None,
    }


def _counted(state: SessionStats, event: Event) -> SessionStats:
    stats: SessionStats = {**state, "last_activity": event.time}
    count = _COUNTS.get(event.type)
    if count is not None:
        count(stats, event)
    return stats


def _count_turn(stats: SessionStats, _event: Event) -> None:
    stats["turns"] += 1


def _count_step(stats: SessionStats, _event: Event) -> None:
    stats["steps"] += 1


def _count_tool(stats: SessionStats, event: Event) -> None:
    if (start := _data(event, ToolStart)) is not None:
        tools = stats["tools"]
        stats["tools"] = {**tools, start.name: tools.get(start.name, 0) + 1}


def _count_tokens(stats: SessionStats, event: Event) -> None:
    message = _data(event, AssistantMessage)
    if message is not None and message.usage is not None:
        stats["input_tokens"] += message.usage.input_tokens
        stats["output_tokens"] += message.usage.output_tokens


_COUNTS: Mapping[str, Callable[[SessionStats, Event], None]] = {
    "turn/start": _count_turn,
    "step/start": _count_step,
    "tool/start": _count_tool,
    "assistant/message": _count_tokens,
}


def _data(event: Event, kind: type[T]) -> T | None:
    """Decode an event's data; one that was stored and no longer fits counts for nothing."""
    try:
        return event.data_as(kind)
    except msgspec.DecodeError:
        return None


def _as_it_is(state: Any) -> Any:
    return state


UNITS: tuple[Unit, ...] = (
    Unit(
        key="title",
        state_version=2,
        event_types=frozenset({"user/message", "session/renamed"}),
        initial=_untitled,
        apply=_titled,
        view=_as_it_is,
        state_schema=Title | None,
        view_schema=Title | None,
    ),
    Unit(
        key="sessionStats",
        state_version=1,
        event_types=frozenset({*_COUNTS, "turn/end", "step/end", "user/message"}),
        initial=_nothing_yet,
        apply=_counted,
        view=_as_it_is,
        state_schema=SessionStats,
        view_schema=SessionStats,
    ),
)
