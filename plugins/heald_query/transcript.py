"""A log for people: one line for each event, and messages in full."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from heald import counted, shortened, told_time
from heald import visible as shown
from heald_persistence import Damage
from heald_session import (
    AssistantMessage,
    Event,
    HistorySummary,
    InboxMessage,
    StepEnd,
    StepStart,
    ToolResult,
    ToolStart,
    TurnContext,
    TurnEnd,
    TurnStart,
    UserMessage,
)

_SUMMARY_LENGTH = 100
_INDENT = " " * 8
_KEPT = re.compile("([\\t\\n\\u200d]+)")  # what joins pictures is harmless


def visible(text: str) -> str:
    """Return text that may have lines and tabs, and does nothing else to a terminal.

    A log holds what models and tools wrote.
    """
    return "".join(part if _KEPT.match(part) else shown(part) for part in _KEPT.split(text))


def lines_of(event: Event) -> Iterator[str]:
    """Yield what people see of an event."""
    summary, text = _told(event)
    head = f"{event.seq:>5}  {told_time(event.time)}  {event.type:<18}  {summary}"
    yield " ".join(visible(head).splitlines()).rstrip()
    for line in visible(text).splitlines():
        yield (_INDENT + line).rstrip()


def lines_of_damage(damage: Damage) -> Iterator[str]:
    """Yield what people see in the place of events that cannot be read."""
    lost = "some events" if damage.count is None else counted(damage.count, "event")
    gap = f"{lost} from {damage.first} on cannot be read" if damage.count != 0 else "no event lost"
    where = f"{damage.file} at byte {damage.offset}"
    yield visible(f"-----  damaged: {gap}  ({damage.kind} in {where}: {damage.reason})  -----")


def _told(event: Event) -> tuple[str, str]:
    """Return a summary and a text; data that does not fit its type is shown as it is."""
    teller = _TELLERS.get(event.type)
    if teller is not None:
        kind, tell = teller
        try:
            return tell(event.data_as(kind))
        except msgspec.DecodeError:
            pass
    return shortened(_json(event.data), _SUMMARY_LENGTH), ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _turn_start(data: TurnStart) -> tuple[str, str]:
    return f"turn {data.turn}", ""


def _turn_end(data: TurnEnd) -> tuple[str, str]:
    cause = f": {data.cause}" if data.cause else ""
    return f"turn {data.turn} {data.outcome}{cause}", ""


def _turn_context(data: TurnContext) -> tuple[str, str]:
    tools = ", ".join(tool.name for tool in data.tools) or "none"
    return f"system prompt of {len(data.system)} characters; tools: {tools}", ""


def _step_start(data: StepStart) -> tuple[str, str]:
    return f"turn {data.turn} step {data.step} on {data.model}", ""


def _step_end(data: StepEnd) -> tuple[str, str]:
    return f"turn {data.turn} step {data.step}", ""


def _inbox_message(data: InboxMessage) -> tuple[str, str]:
    return f"{data.lane}, {_sender(data.sender)}", data.text


def _user_message(data: UserMessage) -> tuple[str, str]:
    return _sender(data.sender), data.text


def _sender(sender: str | None) -> str:
    return "from a person" if sender is None else f"from session {sender}"


def _assistant_message(data: AssistantMessage) -> tuple[str, str]:
    usage = data.usage
    tokens = f", {usage.input_tokens} tokens in, {usage.output_tokens} out" if usage else ""
    calls = [f"-> {call.name} {_json(call.arguments)}" for call in data.tool_calls]
    return f"{data.finish}{tokens}", "\n".join([data.text, *calls] if data.text else calls)


def _tool_start(data: ToolStart) -> tuple[str, str]:
    return data.name, ""


def _tool_result(data: ToolResult) -> tuple[str, str]:
    return f"{data.name} failed" if data.is_error else data.name, data.text


def _history_summary(data: HistorySummary) -> tuple[str, str]:
    return "summary", data.text


_TELLERS: Mapping[str, tuple[type[Any], Callable[[Any], tuple[str, str]]]] = {
    "turn/start": (TurnStart, _turn_start),
    "turn/end": (TurnEnd, _turn_end),
    "turn/context": (TurnContext, _turn_context),
    "step/start": (StepStart, _step_start),
    "step/end": (StepEnd, _step_end),
    "inbox/message": (InboxMessage, _inbox_message),
    "user/message": (UserMessage, _user_message),
    "assistant/message": (AssistantMessage, _assistant_message),
    "tool/start": (ToolStart, _tool_start),
    "tool/result": (ToolResult, _tool_result),
    "history/summary": (HistorySummary, _history_summary),
}
