"""Which part of the surface a summary replaces, and which part stays as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from heald_session import AssistantMessage, Message, Shown, ToolResult, UserMessage


def older(shown: Sequence[Shown], kept: int) -> Sequence[Shown]:
    """Return what comes before the newest messages that have at most `kept` characters.

    What stays begins where a person or another session spoke, and with every call that it has the
    result of.
    """
    begin, size, owed = len(shown), 0, Counter[str]()
    for place in range(len(shown) - 1, -1, -1):
        message = shown[place].message
        size += length(message)
        if size > kept:
            break
        _owe(owed, message)
        if isinstance(message, UserMessage) and not owed.total():
            begin = place
    return shown[:begin]


def length(message: Message | None) -> int:
    """Return how many characters the model reads of a message."""
    if message is None:
        return 0
    calls = message.tool_calls if isinstance(message, AssistantMessage) else []
    return len(message.text) + sum(len(msgspec.json.encode(call.arguments)) for call in calls)


def _owe(owed: Counter[str], message: Message | None) -> None:
    """Follow, backwards, which results still lack their call."""
    if isinstance(message, ToolResult):
        owed[message.call_id] += 1
    elif isinstance(message, AssistantMessage):
        for call in message.tool_calls:
            owed[call.id] = max(owed[call.id] - 1, 0)
