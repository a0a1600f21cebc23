"""The checkpoint store: what is saved when, and what is served to whom."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any
from weakref import WeakKeyDictionary

from heald import CancelToken, Host
from heald_persistence import session_persistence
from heald_projection import CellState, Snapshot, projections, units
from heald_projection_cache import rows
from heald_projection_cache.contracts import Checkpoint, witness_of
from heald_projection_cache.database import Database
from heald_projection_cache.rows import LogIdentity
from heald_session import Event, Header, LogOffset, Session

_logger = logging.getLogger("heald_projection_cache")


class Checkpoints:
    """Keeps the cells of stored sessions in a database that may be deleted at any time."""

    def __init__(self, host: Host, database: Database) -> None:
        self._host = host
        self._database = database
        self._kept: WeakKeyDictionary[Session, LogOffset] = WeakKeyDictionary()

    async def cached_snapshot(
        self,
        header: Header,
        cut: LogOffset,
        keys: Collection[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Snapshot | None:
        """Return views at the highest offset kept for exactly this log."""
        kept = await self.checkpoint(header, cut, keys, cancel=cancel)
        if kept is None:
            return None
        views = dict(view for state in kept.states for view in self._view(state))
        values = {key: views[key] for key in keys if key in views}
        return Snapshot(kept.offset - 1, values)

    async def checkpoint(
        self,
        header: Header,
        cut: LogOffset,
        keys: Collection[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Checkpoint | None:
        """Return the states at the highest offset kept for exactly this log."""
        _check(cancel)
        log, wanted = LogIdentity.of(header, cut), frozenset(keys)
        kept = await self._database.read(lambda connection: rows.highest(connection, log, wanted))
        _check(cancel)
        return kept

    async def drop(self, header: Header, checkpoint: Checkpoint) -> None:
        """Forget states that a log was seen not to bear out."""
        await self._database.write(
            lambda connection: rows.forget(connection, header.id, checkpoint)
        )

    async def save(self, session: Session) -> None:
        """Keep a live session's cells, once what they were folded from is durable."""
        try:
            await self._save(session)
        except Exception as error:  # noqa: BLE001 - what is derived may not fail what it is of
            _logger.warning("session %s was not checkpointed: %s", session.id, error)

    async def _save(self, session: Session) -> None:
        service = session.scope.find(projections)
        end = session.end
        if service is None or end == self._kept.get(session, 0):
            return
        if session.scope.find(session_persistence) is None:
            return
        states, faulted = service.cells(session), service.faulted(session)
        last = await _last_event(session, end)
        await session.flush()
        if last is None or session.flushed < end:
            return
        checkpoint = Checkpoint(end, witness_of(last), tuple(states))
        log = LogIdentity.of(session.header, session.cut)
        if await self._database.write(
            lambda connection: rows.write(connection, log, checkpoint, faulted)
        ):
            self._kept[session] = end

    def _view(self, state: CellState) -> list[tuple[str, Any]]:
        """Return a state's view, or nothing where the unit of today cannot make one of it."""
        unit = self._host.vocabulary(units).get(state.key)
        if unit is None or unit.view is None or not state.fits(unit):
            return []
        try:
            return [(state.key, unit.view(state.state))]
        except Exception:  # noqa: BLE001 - a fold that reads the log will say what is wrong
            return []


async def _last_event(session: Session, end: LogOffset) -> Event | None:
    async for event in session.read(LogOffset(max(end - 1, 0)), end):
        return event
    return None


def _check(cancel: CancelToken | None) -> None:
    if cancel is not None:
        cancel.check()
