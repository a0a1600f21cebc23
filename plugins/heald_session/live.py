"""A live session: its log in memory, its observers, and the writer that keeps it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import msgspec

from heald import Scope
from heald_persistence import LogWriter
from heald_session.admission import admit, ask_guards
from heald_session.conversation import Message, TurnContext
from heald_session.errors import AppendReentrant, EventInvalid, SessionClosed
from heald_session.events import Event, NewEvent, Surface
from heald_session.header import Header
from heald_session.history import History
from heald_session.hookspecs import event_appended
from heald_session.positions import LogOffset, Seq, SessionId
from heald_session.vocabulary import EventTypes


class LiveSession:
    """The one object that a live session is; without a writer it lives in memory only."""

    def __init__(
        self,
        header: Header,
        cut: LogOffset,
        scope: Scope,
        types: EventTypes,
        writer: LogWriter | None,
    ) -> None:
        self._header = header
        self._cut = cut
        self._scope = scope
        self._types = types
        self._writer = writer
        self._events: list[Event] = []
        self._history = History()
        self._context: TurnContext | None = None
        self._flushed = LogOffset(0)
        self._appending = False
        self._closed = False

    @property
    def id(self) -> SessionId:
        return self._header.id

    @property
    def header(self) -> Header:
        return self._header

    @property
    def cut(self) -> LogOffset:
        return self._cut

    @property
    def end(self) -> LogOffset:
        return LogOffset(len(self._events))

    @property
    def flushed(self) -> LogOffset:
        return self._flushed if self._writer is None else self._writer.flushed

    @property
    def not_saved(self) -> str | None:
        return None if self._writer is None else self._writer.not_saved

    @property
    def scope(self) -> Scope:
        return self._scope

    @property
    def closed(self) -> bool:
        return self._closed

    def is_own(self, seq: Seq) -> bool:
        return seq >= self._cut

    def append(
        self,
        type: str,  # noqa: A002
        data: Any,
        *,
        surface: Surface | None = None,
        sources: tuple[Seq, ...] | None = None,
    ) -> Event:
        if self._closed:
            raise SessionClosed(self.id)
        if self._appending:
            raise AppendReentrant(self.id, type)
        self._appending = True
        try:
            event = self.write(NewEvent(type, data, surface, sources))
            self._scope.notify(event_appended, self, event)
        finally:
            self._appending = False
        return event

    def write(self, new: NewEvent) -> Event:
        """Check and commit an event without telling observers, as before anyone can see it."""
        admitted = admit(self._types, new)
        self._check_references(new, admitted.type.name)
        ask_guards(self, admitted, new)
        event = admitted.event(Seq(len(self._events)), self._now(), new)
        self.commit(event)
        return event

    def commit(self, event: Event) -> None:
        """Take an event that continues the log, and queue it for storage."""
        if self._writer is not None:
            self._writer.append((event,))  # raises before anything changed
        self._take(event)

    def inherit(self, events: Sequence[Event]) -> None:
        """Begin with another log's events, and queue them for storage."""
        if self._writer is not None:
            self._writer.append(events)
        self.load(events)

    def load(self, events: Iterable[Event]) -> None:
        """Take events that storage has already."""
        for event in events:
            self._take(event)

    async def flush(self) -> None:
        if self._writer is None:
            self._flushed = self.end
        else:
            await self._writer.flush()

    @property
    def hot_from(self) -> LogOffset:
        return LogOffset(0)

    def hot(self, start: LogOffset | None = None) -> Sequence[Event]:
        if start is not None and start < self.hot_from:
            raise IndexError(f"{start} is before {self.hot_from}, where memory begins")
        return tuple(self._events[start or 0 :])

    async def read(
        self, start: LogOffset = LogOffset(0), stop: LogOffset | None = None
    ) -> AsyncIterator[Event]:
        for event in self._events[start : self.end if stop is None else stop]:
            yield event

    def history(self) -> tuple[Message, ...]:
        return self._history.messages()

    def context(self) -> TurnContext | None:
        return self._context

    def close(self) -> None:
        """Refuse every further append."""
        self._closed = True

    async def release(self) -> None:
        """Let storage go."""
        if self._writer is not None:
            await self._writer.close()

    async def discard(self) -> None:
        """Let storage go without keeping what it has not stored yet."""
        if self._writer is not None:
            await self._writer.discard()

    def _take(self, event: Event) -> None:
        self._events.append(event)
        self._history.add(event)
        if event.type == "turn/context":
            self._context = _context_of(event) or self._context

    def _now(self) -> int:
        now = self._scope.host.now()
        return max(now, self._events[-1].time) if self._events else now

    def _check_references(self, new: NewEvent, name: str) -> None:
        fault = None if new.surface is None else self._history.fault(new.surface)
        if fault is None and any(not 0 <= seq < self.end for seq in new.sources or ()):
            fault = f"sources {new.sources} are not all earlier events"
        if fault is not None:
            raise EventInvalid(name, self._types.owner(name), fault)


def _context_of(event: Event) -> TurnContext | None:
    try:
        return event.data_as(TurnContext)
    except msgspec.ValidationError:
        return None
