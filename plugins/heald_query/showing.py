"""Reads what of a stored log a person asked to see, and goes on reading while it grows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

import attrs

from heald_persistence import Damage, LogChanged, SessionPersistence, StoredLog
from heald_query.errors import OffsetBeyondEnd
from heald_query.windows import items_of
from heald_session import Event, LogOffset, SessionId

_BETWEEN_LOOKS = 0.2
"""Seconds between two looks at a log that may be written by another process."""

_TURNS = ("turn/start", "turn/end")


@attrs.frozen(kw_only=True)
class Selection:
    """Which events of a log: those of some types, from one on or the last, up to a number."""

    start: LogOffset = LogOffset(0)
    limit: int | None = None
    tail: int | None = None
    types: frozenset[str] = frozenset()


async def shown(log: StoredLog, selection: Selection) -> AsyncIterator[Event | Damage]:
    """Yield the selected events, and damage in its place; raises `OffsetBeyondEnd`."""
    if selection.start > log.end:
        raise OffsetBeyondEnd(log.header.id, selection.start, log.end)
    if selection.tail is not None and selection.types:
        last: deque[Event | Damage] = deque(maxlen=selection.tail)
        async for item in _read(log, selection):
            last.append(item)
        for item in last:
            yield item
        return
    if selection.tail is not None:
        start = LogOffset(max(0, log.end - selection.tail))
        selection = attrs.evolve(selection, start=start)
    left = selection.limit
    async for item in _read(log, selection):
        if left == 0:
            return
        yield item
        if left is not None and isinstance(item, Event):
            left -= 1


async def followed(
    storage: SessionPersistence,
    id: SessionId,  # noqa: A002
    selection: Selection,
    *,
    until_turn_end: bool,
) -> AsyncIterator[Event | Damage]:
    """Yield the selected events, then those that are written later, by whatever process.

    With `until_turn_end` it is over once a turn was opened and none is open. Takes no lock. Raises
    `LogChanged` if another log is put in this one's place, and what reading raises.
    """
    log_id: str | None = None
    over, looked = False, LogOffset(0)
    while True:
        async with await storage.read(id) as log:
            if log_id not in (None, log.header.log_id):
                raise LogChanged(id, "another log has its place")
            log_id = log.header.log_id
            async for item in shown(log, selection):
                yield item
            selection = Selection(start=log.end, types=selection.types)
            if until_turn_end:
                over, looked = await _turns_are_over(log, looked, before=over), log.end
            if over:
                return
        await asyncio.sleep(_BETWEEN_LOOKS)


def _read(log: StoredLog, selection: Selection) -> AsyncIterator[Event | Damage]:
    start, stop = selection.start, None
    if selection.limit is not None and not selection.types:
        stop = LogOffset(start + selection.limit)
    return items_of(log, start, stop, selection.types)


async def _turns_are_over(log: StoredLog, start: LogOffset, *, before: bool) -> bool:
    """Say whether a turn was opened and none is open, given how it was at `start`."""
    async for batch in log.batches(start, types=_TURNS, on_damage=lambda _: None):
        for event in batch:
            before = event.type == "turn/end"
    return before
