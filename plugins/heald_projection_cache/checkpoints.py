"""The checkpoint store: what is kept of a session, and what is served to whom."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

import apsw

from heald import CancelToken, Host, raise_if_cancelled
from heald_persistence import last_before, lasting_persistence
from heald_projection import Snapshot, projections
from heald_projection_cache import rows
from heald_projection_cache.contracts import Checkpoint, witness_of
from heald_projection_cache.rows import LogIdentity
from heald_session import Header, LogOffset, Session, SessionId
from heald_sqlite import DerivedDatabase

T = TypeVar("T")
_logger = logging.getLogger("heald_projection_cache")


class Checkpoints:
    """Keeps the cells of stored sessions in a database that may be deleted at any time.

    Of logs that do not outlive the process it keeps nothing, and so knows nothing.
    """

    def __init__(self, host: Host, database: DerivedDatabase) -> None:
        self._host = host
        self._database = database
        self._saving: WeakKeyDictionary[Session, asyncio.Lock] = WeakKeyDictionary()
        """Saves of one session go one by one, so that the last is done when it is let go."""
        self._saved: WeakKeyDictionary[Session, LogOffset] = WeakKeyDictionary()
        """Up to where each session was last kept."""

    async def cached_snapshot(
        self,
        header: Header,
        cut: LogOffset,
        keys: Collection[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Snapshot | None:
        """Return views at the offset kept for exactly this log."""
        found = await self.cached_snapshots([(header, cut)], keys, cancel=cancel)
        return found.get(header.id)

    async def cached_snapshots(
        self,
        logs: Sequence[tuple[Header, LogOffset]],
        keys: Collection[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Mapping[SessionId, Snapshot]:
        """Return views at the offsets kept for exactly these logs."""
        raise_if_cancelled(cancel)
        views = self._host.scope.require(projections).kept_views(keys)

        def work(connection: apsw.Connection) -> dict[SessionId, Snapshot]:
            identities = [LogIdentity.of(header, cut) for header, cut in logs]
            found = rows.values(connection, identities, views.versions)
            return {id_: Snapshot(offset - 1, views.of(values)) for id_, offset, values in found}

        snapshots = await self._read(work)
        raise_if_cancelled(cancel)
        return snapshots if snapshots is not None else {}

    async def checkpoint(
        self,
        header: Header,
        cut: LogOffset,
        keys: Collection[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Checkpoint | None:
        """Return the states at the offset kept for exactly this log."""
        raise_if_cancelled(cancel)
        kept = await self._read(lambda connection: rows.kept_for(connection, header.id))
        raise_if_cancelled(cancel)
        if kept is None or kept.log != LogIdentity.of(header, cut):
            return None
        return kept.checkpoint(frozenset(keys))

    async def drop(self, header: Header, checkpoint: Checkpoint) -> None:
        """Forget states that a log was seen not to bear out."""
        await self._write(lambda connection: rows.forget(connection, header.id, checkpoint))

    async def forget(self, id: SessionId) -> None:  # noqa: A002
        """Forget a session that is not stored any more."""
        await self._write(lambda connection: rows.forget_session(connection, id))

    def has_all_of(self, session: Session) -> bool:
        """Say whether a save has kept a live session up to its end."""
        return self._saved.get(session) == session.end

    async def save(self, session: Session) -> None:
        """Keep a live session's cells, once what they were folded from is durable."""
        async with self._saving.setdefault(session, asyncio.Lock()):
            try:
                await self._save(session)
            except Exception as error:  # noqa: BLE001 - what is derived fails nothing it is of
                _logger.warning("session %s was not checkpointed: %s", session.id, error)

    async def _save(self, session: Session) -> None:
        service = session.scope.find(projections)
        end = session.end
        if service is None or not end or lasting_persistence(session.scope) is None:
            return
        states = tuple(service.cells(session))
        last = await last_before(session.read, end)
        await session.flush()
        if last is None or session.flushed < end:
            return
        log = LogIdentity.of(session.header, session.cut)
        checkpoint = Checkpoint(end, witness_of(last), states)
        if await self._write(lambda connection: rows.write(connection, log, checkpoint)):
            self._saved[session] = end

    async def _read(self, work: Callable[[apsw.Connection], T]) -> T | None:
        lasting = lasting_persistence(self._host.scope) is not None
        return await self._database.read(work) if lasting else None

    async def _write(self, work: Callable[[apsw.Connection], None]) -> bool:
        lasting = lasting_persistence(self._host.scope) is not None
        return lasting and await self._database.write(work)
