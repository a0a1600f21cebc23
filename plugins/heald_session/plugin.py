"""The row that keeps sessions, and the conversation vocabulary it declares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from heald import Plugin, RowContext, implements, setting
from heald_commands import Command, commands
from heald_projection import Unit, units
from heald_session.contracts import SessionStore
from heald_session.conversation import (
    AssistantMessage,
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
from heald_session.events import EventType
from heald_session.hookspecs import event_types, session_store
from heald_session.naming import SessionRenamed
from heald_session.rename_command import RENAME_COMMAND
from heald_session.store import LiveSessions
from heald_session.units import UNITS
from heald_session.window import WindowLimits

EVENT_TYPES = (
    EventType("session/renamed", SessionRenamed),
    EventType("turn/start", TurnStart),
    EventType("turn/end", TurnEnd),
    EventType("turn/context", TurnContext),
    EventType("step/start", StepStart),
    EventType("step/end", StepEnd),
    EventType("inbox/message", InboxMessage),
    EventType("user/message", UserMessage),
    EventType("assistant/message", AssistantMessage),
    EventType("tool/start", ToolStart),
    EventType("tool/result", ToolResult),
    EventType("history/summary", HistorySummary),
)


def _positive(_: Any, field: attrs.Attribute[Any], value: int) -> None:
    if value <= 0:
        raise ValueError(f"{field.name} must be more than 0")


@attrs.frozen
class SessionConfig:
    """How much of a live session that is stored stays in memory."""

    hot_events: int = setting(default=10_000, validator=_positive)
    """How many of its newest events."""
    hot_bytes: int = setting(default=64 * 1024 * 1024, validator=_positive)
    """About how many bytes of them."""


class SessionPlugin(Plugin[SessionConfig]):
    """Keeps the live sessions of this process; storage is another row's and optional."""

    def __init__(self, context: RowContext[SessionConfig]) -> None:
        super().__init__(context)
        limits = WindowLimits(context.config.hot_events, context.config.hot_bytes)
        self._store = LiveSessions(self.scope.host, self.logger, limits)

    async def stop(self) -> None:
        await self._store.close()

    @implements(session_store)
    def store(self) -> SessionStore:
        """Offer the live sessions."""
        return self._store

    @implements(commands)
    def rename(self) -> Iterable[Command]:
        """Contribute `/rename`."""
        return (RENAME_COMMAND,)

    @classmethod
    @implements(event_types)
    def vocabulary(cls) -> Iterable[EventType]:
        """Declare what a session's name, turns, steps, messages and tool calls hold."""
        return EVENT_TYPES

    @classmethod
    @implements(units)
    def folds(cls) -> Iterable[Unit]:
        """Declare what can be said of a session in short."""
        return UNITS
