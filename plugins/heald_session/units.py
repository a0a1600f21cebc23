"""The projections of every session: what it is called, how it stands, what was done in it."""

from __future__ import annotations

from typing import Any, Final, TypedDict, TypeVar

import msgspec

from heald_projection import Unit
from heald_session.conversation import ToolStart, UserMessage
from heald_session.events import Event
from heald_session.header import Header
from heald_session.naming import SessionRenamed
from heald_session.positions import LogOffset
from heald_session.token_usage import TOKEN_USAGE

LINE_LENGTH: Final = 80
"""How many characters of a name or a prompt are shown in a list."""

T = TypeVar("T")


class Title(TypedDict):
    """What a person called the session, else the first line of the first prompt that has one."""

    text: str


class SessionListMetadata(TypedDict):
    """How a session stands, for whoever chooses one from a list; inherited events count too."""

    blank: bool
    """Whether no turn was opened yet."""
    last_activity: int | None
    """When something was last said, or a turn or step began or ended: milliseconds of the epoch."""
    last_prompt: str | None
    """The first line of what was last asked of it; what its own children send asks nothing."""


class _Metadata(SessionListMetadata):
    parent: str | None
    """The session that may ask something of this one, as a person may."""


class SessionStats(TypedDict):
    """How much was done in a session so far, inherited events included."""

    turns: int
    steps: int
    tools: dict[str, int]
    """How often each tool was run; a call that was refused before it ran does not count."""


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
    """Return the first line that is not blank, cut to what a list has room for."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), None)
    if line is None or len(line) <= LINE_LENGTH:
        return line
    return line[: LINE_LENGTH - 1] + "…"


def _untouched(header: Header, _cut: LogOffset) -> _Metadata:
    parent = header.parent_session
    return {"blank": True, "last_activity": None, "last_prompt": None, "parent": parent}


def _moved(state: _Metadata, event: Event) -> _Metadata:
    prompt = _asked(event, state["parent"]) if event.type == "user/message" else None
    return {
        "blank": state["blank"] and event.type != "turn/start",
        "last_activity": event.time,
        "last_prompt": prompt or state["last_prompt"],
        "parent": state["parent"],
    }


def _asked(event: Event, parent: str | None) -> str | None:
    prompt = _data(event, UserMessage)
    if prompt is None or prompt.sender not in {None, parent}:
        return None
    return _first_line(prompt.text)


def _shown(state: _Metadata) -> SessionListMetadata:
    return {
        "blank": state["blank"],
        "last_activity": state["last_activity"],
        "last_prompt": state["last_prompt"],
    }


def _nothing_yet(_header: Header, _cut: LogOffset) -> SessionStats:
    return {"turns": 0, "steps": 0, "tools": {}}


def _counted(state: SessionStats, event: Event) -> SessionStats:
    turns, steps, tools = state["turns"], state["steps"], state["tools"]
    if event.type == "turn/start":
        turns += 1
    elif event.type == "step/start":
        steps += 1
    elif (start := _data(event, ToolStart)) is not None:
        tools = {**tools, start.name: tools.get(start.name, 0) + 1}
    else:
        return state
    return {"turns": turns, "steps": steps, "tools": tools}


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
        key="sessionListMetadata",
        state_version=1,
        event_types=frozenset(
            {
                "turn/start",
                "turn/end",
                "step/start",
                "step/end",
                "user/message",
                "assistant/message",
            }
        ),
        initial=_untouched,
        apply=_moved,
        view=_shown,
        state_schema=_Metadata,
        view_schema=SessionListMetadata,
    ),
    Unit(
        key="sessionStats",
        state_version=2,
        event_types=frozenset({"turn/start", "step/start", "tool/start"}),
        initial=_nothing_yet,
        apply=_counted,
        view=_as_it_is,
        state_schema=SessionStats,
        view_schema=SessionStats,
    ),
    TOKEN_USAGE,
)
