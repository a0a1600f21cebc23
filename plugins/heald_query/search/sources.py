"""Where documents come from: a live session or a stored log, read on from a watermark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Protocol

import attrs

from heald import CancelToken, raise_if_cancelled
from heald_persistence import Damage, StoredLog, last_before, session_persistence
from heald_projection_cache import witness_of
from heald_query.search.index import Document, Indexed, Piece, Watermark
from heald_query.search.texts import TYPES, text_of
from heald_query.search.words import parts_of, words_of
from heald_session import Event, Header, LogOffset, Session, after

_EVENTS = 500
"""How many events go into one piece."""
_BYTES = 1024 * 1024
"""How much data of events does."""


class Source(Protocol):
    """A log that is indexed."""

    @property
    def header(self) -> Header: ...

    @property
    def cut(self) -> LogOffset: ...

    @property
    def end(self) -> LogOffset: ...

    @property
    def stamp(self) -> str | None: ...

    @property
    def damaged(self) -> bool: ...

    def events(self, start: LogOffset, stop: LogOffset) -> AsyncIterator[Event]: ...

    async def settle(self) -> None: ...


class LiveSource:
    """A live session, up to what is durable, if it is kept anywhere."""

    stamp = None
    damaged = False

    def __init__(self, session: Session, cancel: CancelToken | None = None) -> None:
        self._session = session
        self._cancel = cancel
        self.header = session.header
        self.cut = session.cut
        kept = session.scope.find(session_persistence) is not None
        self.end = session.flushed if kept else session.end

    async def events(self, start: LogOffset, stop: LogOffset) -> AsyncIterator[Event]:
        """Yield events, from memory as far as they are there."""
        async for event in self._session.read(start, stop):
            raise_if_cancelled(self._cancel)
            yield event

    async def settle(self) -> None:
        """Nothing is left to do: no more is read than was flushed."""


class StoredSource:
    """A stored log, whoever writes it."""

    def __init__(self, log: StoredLog, stamp: str | None, cancel: CancelToken | None) -> None:
        self._log = log
        self._cancel = cancel
        self.header = log.header
        self.cut = log.cut
        self.end = log.end
        self.stamp = stamp
        self.damaged = False

    async def events(self, start: LogOffset, stop: LogOffset) -> AsyncIterator[Event]:
        """Yield the events that can be read; up to the end, also note what is lost behind it."""
        last = stop if stop < self.end else None
        batches = self._log.batches(start, last, on_damage=self._note, cancel=self._cancel)
        async for batch in batches:
            for event in batch:
                yield event

    async def settle(self) -> None:
        """Make durable what was read: what is indexed may not be ahead of a log."""
        await self._log.settle()

    def _note(self, damage: Damage) -> None:
        lost = damage.count != 0
        self.damaged |= lost and (damage.types is None or not TYPES.isdisjoint(damage.types))


async def pieces(source: Source, row: Indexed | None) -> AsyncGenerator[Piece, None]:
    """Yield what is to be indexed of a log beyond what is remembered of it.

    A log that does not bear that out, or could not be read wholly, is indexed from its beginning.
    """
    before: Watermark | None = None
    if row is not None and not row.damaged and await _bears_out(source, row.watermark):
        before = row.watermark
    place = before or Watermark(_id(source), LogOffset(0), "")
    async for events in _slices(source, place.offset):
        documents = await asyncio.to_thread(_documents, events, source.cut)
        await source.settle()
        place = Watermark(_id(source), after(events[-1].seq), witness_of(events[-1]))
        yield _piece(source, before, place, documents)
        before = place
    end = attrs.evolve(place, offset=source.end)
    yield attrs.evolve(_piece(source, before, end), stamp=source.stamp, last=True)


async def _bears_out(source: Source, mark: Watermark) -> bool:
    """Say whether a log still has what was indexed of it."""
    if mark.log_id != _id(source) or mark.offset > source.end:
        return False
    last = await last_before(source.events, mark.offset)
    return mark.offset == 0 or (last is not None and witness_of(last) == mark.witness)


async def _slices(source: Source, start: LogOffset) -> AsyncIterator[Sequence[Event]]:
    events: list[Event] = []
    size = 0
    async for event in source.events(start, source.end):
        events.append(event)
        size += len(event.encoded)
        if len(events) == _EVENTS or size > _BYTES:
            yield events
            events, size = [], 0
    if events:
        yield events


def _documents(events: Sequence[Event], cut: LogOffset) -> list[Document]:
    texts = (text for text in map(text_of, events) if text is not None)
    made: list[Document] = []
    for text in texts:
        words = words_of(text.text)
        made.append(Document(text, text.seq < cut, words, parts_of(words)))
    return made


def _piece(
    source: Source,
    before: Watermark | None,
    place: Watermark,
    documents: Sequence[Document] = (),
) -> Piece:
    return Piece(
        header=source.header,
        before=before,
        after=place,
        documents=documents,
        damaged=source.damaged,
    )


def _id(source: Source) -> str:
    return source.header.log_id
