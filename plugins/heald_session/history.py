"""What the model sees of a log: the fold of its surface events, balanced for a request."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from heald_session.conversation import (
    AssistantMessage,
    HistorySummary,
    Message,
    Shown,
    ToolResult,
    UserMessage,
)
from heald_session.events import Event, Surface
from heald_session.positions import Seq

_Data = UserMessage | AssistantMessage | ToolResult | HistorySummary
MESSAGES: dict[str, type[_Data]] = {
    "user/message": UserMessage,
    "assistant/message": AssistantMessage,
    "tool/result": ToolResult,
    "history/summary": HistorySummary,
}
"""The event types a model can be shown."""

NO_RESULT = "This tool call has no result."
"""What the model gets for a call that nothing answered."""


_Undecoded = tuple[str, msgspec.Raw]
"""Type and data of a surface event that nobody asked for yet.

The data is a copy: what was read from storage keeps everything alive that it was read with.
"""


class History:
    """The surface of one log, kept as its events come; they are decoded when they are asked for."""

    def __init__(self) -> None:
        self._seqs: list[Seq] = []
        self._entries: list[_Undecoded | Message | None] = []

    def add(self, event: Event, surface: Surface) -> None:
        """Take an event into its place on the surface."""
        entry = (event.type, event.encoded.copy())
        if surface.op == "append":
            self._seqs.append(event.seq)
            self._entries.append(entry)
        else:
            begin, end = self._shadowed(surface)
            self._seqs[begin:end] = [event.seq]
            self._entries[begin:end] = [entry]

    def fault(self, surface: Surface) -> str | None:
        """Say why an event cannot be written with this surface, if it cannot."""
        first, last = surface.first, surface.last
        if surface.op == "append":
            return None if first is None and last is None else "an append replaces no range"
        if first is None or last is None or not {first, last} <= set(self._seqs):
            return f"the range {first} to {last} does not begin and end on the surface"
        if self._seqs.index(first) > self._seqs.index(last):
            return f"event {last} stands before {first} on the surface"
        return None

    def messages(self) -> tuple[Message, ...]:
        """Return what a request may carry."""
        return balanced([one for one in self._decoded() if one is not None])

    def shown(self) -> tuple[Shown, ...]:
        """Return every place of the surface in order, as it is in the log."""
        return tuple(map(Shown, self._seqs, self._decoded()))

    def _decoded(self) -> Iterable[Message | None]:
        for place, entry in enumerate(self._entries):
            message = message_of(*entry) if isinstance(entry, tuple) else entry
            self._entries[place] = message
            yield message

    def _shadowed(self, surface: Surface) -> tuple[int, int]:
        """Return the places a replacement takes; none, at the end, if its range is gone."""
        if self.fault(surface) is None:
            assert surface.first is not None  # noqa: S101 - `fault` looked
            assert surface.last is not None  # noqa: S101
            return self._seqs.index(surface.first), self._seqs.index(surface.last) + 1
        return len(self._seqs), len(self._seqs)


def message_of(type: str, encoded: msgspec.Raw) -> Message | None:  # noqa: A002
    """Return an event's data as a message, or None if it cannot be read as one.

    Stored data may have been written by another version: fields that are not known are left out.
    """
    kind = MESSAGES.get(type)
    if kind is None:
        return None
    try:
        data: _Data | None = msgspec.json.decode(encoded, type=kind)
    except msgspec.ValidationError:
        data = _as_far_as_known(msgspec.json.decode(encoded), kind)
    return UserMessage(data.id, data.text) if isinstance(data, HistorySummary) else data


def _as_far_as_known(data: Any, kind: type[_Data]) -> _Data | None:
    if not isinstance(data, dict):
        return None
    known = {name: value for name, value in data.items() if name in kind.__struct_fields__}
    try:
        return msgspec.convert(known, kind)
    except msgspec.ValidationError:
        return None


def balanced(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Answer every tool call exactly once, right after it, and leave out empty answers.

    A call without a result gets an error result; a result without a call is left out.
    """
    out: list[Message] = []
    for answer, rest in _segments(messages):
        if answer is not None and (answer.text or answer.tool_calls):
            out.append(answer)
            out += _answered(answer, [other for other in rest if isinstance(other, ToolResult)])
        out += [other for other in rest if not isinstance(other, ToolResult)]
    return tuple(out)


def _segments(
    messages: Sequence[Message],
) -> Iterable[tuple[AssistantMessage | None, Sequence[Message]]]:
    """Yield every assistant message with what follows it up to the next; first what is before."""
    answer: AssistantMessage | None = None
    rest: list[Message] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            yield answer, rest
            answer, rest = message, []
        else:
            rest.append(message)
    yield answer, rest


def _answered(answer: AssistantMessage, results: Sequence[ToolResult]) -> Iterable[ToolResult]:
    waiting: dict[str, deque[ToolResult]] = {}
    for result in results:
        waiting.setdefault(result.call_id, deque()).append(result)
    for call in answer.tool_calls:
        found = waiting.get(call.id)
        yield found.popleft() if found else ToolResult(call.id, call.name, NO_RESULT, is_error=True)
