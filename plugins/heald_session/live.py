"""A live session: the hot window of its log, its observers, and the writer that keeps it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from heald import Contribution, Scope
from heald_persistence import (
    LogChanged,
    LogWriter,
    SessionPersistence,
    StoredLog,
    session_persistence,
)
from heald_session.admission import ask
from heald_session.contracts import WindowHolder
from heald_session.conversation import Message, Shown, TurnContext
from heald_session.errors import AppendReentrant, EventInvalid, EventTypeUnknown, SessionClosed
from heald_session.events import APPEND, Event, NewEvent, Surface
from heald_session.header import Header
from heald_session.history import History
from heald_session.hookspecs import (
    append_guards,
    event_appended,
    session_loading,
    window_holders,
)
from heald_session.lossless import encoded
from heald_session.positions import LogOffset, Seq, SessionId
from heald_session.vocabulary import EventTypes, KnownType
from heald_session.window import Window, WindowLimits

_logger = logging.getLogger("heald_session")


class LiveSession:
    """The one object that a live session is; without a writer it lives in memory only."""

    def __init__(
        self,
        header: Header,
        cut: LogOffset,
        scope: Scope,
        *,
        types: EventTypes,
        writer: LogWriter | None,
        limits: WindowLimits,
    ) -> None:
        self._header = header
        self._cut = cut
        self._scope = scope
        self._host = scope.host
        self._types = types
        self._writer = writer
        self._window = Window(limits)
        self._history = History()
        self._context: TurnContext | None = None
        self._time = 0
        """When the last event was appended: time never runs backwards."""
        self._flushed = LogOffset(0)
        self._appending = False
        self._closed = False
        self._failed_holders: set[Contribution[WindowHolder]] = set()

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
        return self._window.end

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
            event = self.write(type, data, surface, sources)
            self._scope.notify(event_appended, self, event)
        finally:
            self._appending = False
        if self._window.is_over:
            self._shrink(self.flushed)
        return event

    def write(
        self,
        type: str,  # noqa: A002
        data: Any,
        surface: Surface | None = None,
        sources: tuple[Seq, ...] | None = None,
    ) -> Event:
        """Check and commit an event without telling observers, as before anyone can see it."""
        known = self._types.find(type)
        if known is None:
            raise EventTypeUnknown(type, self._types.names())
        text = encoded(data)
        try:
            known.decode(text)
        except (msgspec.ValidationError, TypeError) as error:
            raise EventInvalid(known.name, known.owner, str(error)) from error
        if sources is not None or (surface is not None and surface is not APPEND):
            self._check_references(known, surface, sources)
        for guard in self._scope.collect(append_guards):
            if guard.value.types is None or known.name in guard.value.types:
                ask(guard, self, NewEvent(known.name, data, surface, sources), text)
        now, last = self._host.now(), self._time
        event = Event(
            self._window.next_seq,
            known.name,
            now if now > last else last,  # noqa: FURB136 - quicker
            msgspec.Raw(text),
            known.version,
            known.required,
            surface,
            sources,
        )
        self.commit(event, len(text))
        return event

    def commit(self, event: Event, size: int) -> None:
        """Take an event that continues the log, with so much data, and queue it for storage."""
        if self._writer is not None:
            self._writer.append((event,))  # raises before anything changed
        self._window.add(event, size)
        self._follow(event)

    def inherit(self, events: Sequence[Event]) -> None:
        """Go on with another log's events, and queue them for storage."""
        if self._writer is not None:
            self._writer.append(events)
        self.load(events)

    def load(self, events: Sequence[Event]) -> None:
        """Go on with events that storage has, or will have from the first flush on."""
        self._window.extend(events)
        for event in events:
            self._follow(event)
        self._scope.notify(session_loading, self, events)
        self._shrink(self.end)

    async def flush(self) -> None:
        if self._writer is None:
            self._flushed = self.end
        else:
            await self._writer.flush()
            self._shrink(self._writer.flushed)

    @property
    def hot_from(self) -> LogOffset:
        return self._window.start

    def hot(self, start: LogOffset | None = None) -> Sequence[Event]:
        return self._window.part(self._window.start if start is None else start)

    async def read(
        self, start: LogOffset = LogOffset(0), stop: LogOffset | None = None
    ) -> AsyncIterator[Event]:
        end = self.end if stop is None else min(stop, self.end)
        while start < (stored := min(end, self.hot_from)):
            async with await self._scope.require(session_persistence).read(self.id) as log:
                self._check_holds(log, stored)
                async for batch in log.batches(start, stored):
                    for event in batch:
                        yield event
            start = stored  # and memory may begin later by now
        for event in self._window.part(start, end) if start < end else ():
            yield event

    def history(self) -> tuple[Message, ...]:
        return self._history.messages()

    def surface(self) -> tuple[Shown, ...]:
        return self._history.shown()

    def context(self) -> TurnContext | None:
        return self._context

    def is_kept_in(self, storage: SessionPersistence | None) -> bool:
        """Say whether it is this storage that keeps the log."""
        kept = self._writer is not None and storage is not None
        return kept and self._scope.find(session_persistence) is storage

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

    def _follow(self, event: Event) -> None:
        self._time = event.time
        if event.surface is not None:
            self._history.add(event, event.surface)
        if event.type == "turn/context":
            self._context = _context_of(event) or self._context

    def _check_holds(self, log: StoredLog, end: LogOffset) -> None:
        """Refuse a log that is not this session's any more."""
        if log.header.log_id != self._header.log_id:
            raise LogChanged(self.id, "another session is in its place")
        if log.end < end:
            raise LogChanged(self.id, f"it ends at {log.end}, and {end} events were saved")

    def _shrink(self, durable: LogOffset) -> None:
        """Drop events from memory that are durable and that nobody needs there."""
        if self._writer is None or not self._window.is_over or durable <= self._window.start:
            return
        needed = [self._needed(holder) for holder in self._scope.collect(window_holders)]
        self._window.shrink(min([durable, *(offset for offset in needed if offset is not None)]))

    def _needed(self, holder: Contribution[WindowHolder]) -> LogOffset | None:
        """Ask a holder; one that raises is told of once, and holds everything."""
        try:
            return holder.value(self)
        except Exception:
            if holder not in self._failed_holders:
                self._failed_holders.add(holder)
                plugin = holder.origin.plugin
                _logger.exception("a window holder of plugin %s raised; nothing is dropped", plugin)
            return self._window.start

    def _check_references(
        self, known: KnownType, surface: Surface | None, sources: tuple[Seq, ...] | None
    ) -> None:
        fault = None if surface is None else self._history.fault(surface)
        if sources is not None and not all(0 <= seq < self.end for seq in sources):
            fault = f"sources {sources} are not all earlier events"
        if fault is not None:
            raise EventInvalid(known.name, known.owner, fault)


def _context_of(event: Event) -> TurnContext | None:
    try:
        return event.data_as(TurnContext)
    except msgspec.ValidationError:
        return None
