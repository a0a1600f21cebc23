"""Parts of a log with what cannot be read of them in its place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

from heald import CancelToken, raise_if_cancelled
from heald_persistence import Damage, StoredLog
from heald_query.contracts import EventWindow
from heald_session import Event, LogOffset, Session


async def items_of(
    log: StoredLog,
    start: LogOffset,
    stop: LogOffset | None,
    types: Collection[str] = (),
    cancel: CancelToken | None = None,
) -> AsyncIterator[Event | Damage]:
    """Yield the events of a range, of some types if any are named, and damage in its place."""
    damages: list[Damage] = []
    batches = log.batches(start, stop, types=types or None, on_damage=damages.append, cancel=cancel)
    async for batch in batches:
        for damage in damages:
            yield damage
        damages.clear()
        for event in batch:
            yield event
    for damage in damages:
        yield damage


async def stored_window(
    log: StoredLog,
    start: LogOffset,
    stop: LogOffset,
    types: Collection[str],
    cancel: CancelToken | None,
) -> EventWindow:
    """Read a part of a stored log; where it ends may be what is damaged."""
    first = LogOffset(max(start, 0))
    items = [item async for item in items_of(log, first, stop, types, cancel)]
    start, stop = _within(start, stop, log.end)
    return EventWindow(log.header, log.end, start, stop, tuple(items))


async def live_window(
    session: Session,
    start: LogOffset,
    stop: LogOffset,
    types: Collection[str],
    cancel: CancelToken | None,
) -> EventWindow:
    """Read a part of a live session's log; no damaged one is live."""
    end = session.end
    start, stop = _within(start, stop, end)
    items: list[Event] = []
    async for event in session.read(start, stop):
        raise_if_cancelled(cancel)
        if not types or event.type in types:
            items.append(event)
    return EventWindow(session.header, end, start, stop, tuple(items))


def _within(start: LogOffset, stop: LogOffset, end: LogOffset) -> tuple[LogOffset, LogOffset]:
    first = LogOffset(min(max(start, 0), end))
    return first, LogOffset(min(max(stop, first), end))
