"""What a resuming reader appends to a log whose last turn was broken off."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from heald_session.conversation import StepEnd, ToolResult, TurnEnd
from heald_session.events import APPEND, Event, NewEvent

NEVER_STARTED = "This tool call never ran: the session was interrupted before it started."
OUTCOME_UNKNOWN = (
    "The outcome of this tool call is unknown: the session was interrupted while it ran. "
    "Look at what it left behind before calling it again."
)
CAUSE = "interrupted"
"""The cause that a repaired turn records."""


@attrs.define
class OpenTurn:
    """A turn that was opened and not closed, as far as the log tells."""

    turn: int
    step: int | None = None
    calls: dict[str, str] = attrs.field(factory=dict)
    """Names of calls without a result, by call id, in the order the model asked."""
    started: set[str] = attrs.field(factory=set)

    def take(self, event: Event) -> None:
        """Follow the turn through one event."""
        data = event.data if event.type in _FOLLOWED else None
        if not isinstance(data, dict):
            return
        match event.type:
            case "step/start":
                self.step = _number(data.get("step"))
            case "step/end":
                self.step = None
            case "assistant/message":
                self.calls |= _calls(data.get("tool_calls"))
            case "tool/start":
                self.started.add(str(data.get("call_id")))
            case "tool/result":
                self.calls.pop(str(data.get("call_id")), None)

    def closing(self) -> tuple[NewEvent, ...]:
        """Return the events that close the turn."""
        events = [
            NewEvent("tool/result", self._result(call_id, name), APPEND)
            for call_id, name in self.calls.items()
        ]
        if self.step is not None:
            events.append(NewEvent("step/end", StepEnd(self.turn, self.step)))
        return (*events, NewEvent("turn/end", TurnEnd(self.turn, "aborted", CAUSE)))

    def _result(self, call_id: str, name: str) -> ToolResult:
        text = OUTCOME_UNKNOWN if call_id in self.started else NEVER_STARTED
        return ToolResult(call_id, name, text, is_error=True)


_FOLLOWED = frozenset(("step/start", "step/end", "assistant/message", "tool/start", "tool/result"))


@attrs.define
class Repair:
    """Follows a log to its end to know what closes the turn that is open there.

    Earlier turns are left as they are: what they lack, readers balance in memory.
    """

    _turn: OpenTurn | None = None

    def follow(self, events: Iterable[Event]) -> None:
        """Follow the log through its next events."""
        for event in events:
            if event.type == "turn/start":
                data = event.data
                self._turn = OpenTurn(_number(data.get("turn")) if isinstance(data, dict) else 0)
            elif event.type == "turn/end":
                self._turn = None
            elif self._turn is not None:
                self._turn.take(event)

    def closing(self) -> tuple[NewEvent, ...]:
        """Return what closes the open turn; nothing for a log that is balanced."""
        return self._turn.closing() if self._turn is not None else ()


def _calls(calls: Any) -> dict[str, str]:
    found = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return {str(call.get("id")): str(call.get("name")) for call in found}


def _number(value: Any) -> int:
    return value if type(value) is int else 0
