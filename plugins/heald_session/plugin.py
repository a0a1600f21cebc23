"""The row that keeps sessions, and the conversation vocabulary it declares."""

from __future__ import annotations

from collections.abc import Iterable

from heald import NoConfig, Plugin, RowContext, implements
from heald_projection import Unit, units
from heald_session.contracts import SessionStore
from heald_session.conversation import (
    AssistantMessage,
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
from heald_session.store import LiveSessions
from heald_session.units import UNITS

CONVERSATION = (
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
)


class SessionPlugin(Plugin[NoConfig]):
    """Keeps the live sessions of this process; storage is another row's and optional."""

    def __init__(self, context: RowContext[NoConfig]) -> None:
        super().__init__(context)
        self._store = LiveSessions(self.scope.host, self.logger)

    async def stop(self) -> None:
        await self._store.close()

    @implements(session_store)
    def store(self) -> SessionStore:
        """Offer the live sessions."""
        return self._store

    @classmethod
    @implements(event_types)
    def conversation(cls) -> Iterable[EventType]:
        """Declare what turns, steps, messages and tool calls hold."""
        return CONVERSATION

    @classmethod
    @implements(units)
    def folds(cls) -> Iterable[Unit]:
        """Declare what can be said of a session in short."""
        return UNITS
