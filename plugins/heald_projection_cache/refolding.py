"""Folds of whole stored logs, to compare what is kept with, or to keep."""

from __future__ import annotations

from collections.abc import Collection

from heald import HealdError, Host
from heald_persistence import StoredLog
from heald_projection import CellState, Fold, Projections, units
from heald_session import LogOffset


def versions(host: Host) -> dict[str, int]:
    """Return the state version that every unit of today has."""
    return {unit.key: unit.state_version for unit in host.vocabulary(units)}


async def refolded(
    host: Host, service: Projections, log: StoredLog, keys: Collection[str], end: LogOffset
) -> tuple[CellState, ...]:
    """Fold a log from its beginning up to `end`; a unit whose fold fails is absent."""
    today = versions(host)
    fold = service.fold(log.header, log.cut, keys)
    if (types := fold.event_types) is None or types:
        async for batch in log.batches(LogOffset(0), end, types=types):
            for event in batch:
                fold.feed(event)
    found = ((key, _state(fold, key)) for key in keys if key in today)
    return tuple(CellState(key, today[key], end, *state) for key, state in found if state)


def _state(fold: Fold, key: str) -> tuple[object, ...]:
    try:
        return (fold.state(key),)
    except (HealdError, KeyError):
        return ()
