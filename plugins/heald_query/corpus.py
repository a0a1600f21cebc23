"""The list of every session: live ones as they are, stored ones as they were left."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from heald import Cancelled, CancelToken, HealdError, Scope
from heald_persistence import StoredSession, session_persistence
from heald_projection import Snapshot, projections
from heald_projection_cache import projection_cache
from heald_query.contracts import SessionRecord
from heald_query.naming import near
from heald_query.observations import check
from heald_session import LogOffset, Session, SessionId, session_store


class Corpus:
    """Lists the union of live and stored sessions; the services are found when it is asked."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def list(
        self, keys: Collection[str], cancel: CancelToken | None
    ) -> Sequence[SessionRecord]:
        """Return a record for every session, oldest first and broken ones last."""
        check(cancel)
        stored = await self._stored(cancel)
        live = {session.id: session for session in self._live()}
        saved = {item.name for item in stored}
        records = [_live_record(s, saved, self._live_values(s, keys)) for s in live.values()]
        cold = [item for item in stored if item.name not in live]
        kept = [await self._kept_values(item, keys, cancel) for item in cold]
        records += map(_stored_record, cold, kept)
        check(cancel)
        return sorted(records, key=_age)

    async def near(self, id: str, cancel: CancelToken | None) -> tuple[str, ...]:  # noqa: A002
        """Return the ids that an unknown one may have been meant to be; all if they are few."""
        return near(id, [record.id for record in await self.list((), cancel)])

    async def _stored(self, cancel: CancelToken | None) -> Sequence[StoredSession]:
        """List storage; again if a session that was live meanwhile became a stored one."""
        persistence = self._scope.find(session_persistence)
        if persistence is None:
            return ()
        while True:
            before = {session.id for session in self._live()}
            stored = await persistence.list(cancel=cancel)
            check(cancel)
            seen = {item.name for item in stored} | {session.id for session in self._live()}
            if before <= seen:
                return stored

    def _live(self) -> Sequence[Session]:
        store = self._scope.find(session_store)
        return store.live() if store is not None else ()

    def _live_values(self, session: Session, keys: Collection[str]) -> Snapshot | None:
        service = session.scope.find(projections)
        if service is None or not keys:
            return None
        values: dict[str, Any] = {}
        for key in keys:
            try:
                values |= service.snapshot(session, (key,)).values
            except HealdError:  # a row says what is known; whoever selects the key is told
                continue
        return Snapshot(session.end - 1, values)

    async def _kept_values(
        self, item: StoredSession, keys: Collection[str], cancel: CancelToken | None
    ) -> Snapshot | None:
        cache = self._scope.find(projection_cache)
        if cache is None or not keys or item.header is None:
            return None
        cut = item.cut if item.header.is_seeded else LogOffset(0)
        if cut is None:
            return None
        try:
            return await cache.cached_snapshot(item.header, cut, keys, cancel=cancel)
        except Cancelled:
            raise
        except Exception:  # noqa: BLE001 - a cache is optional, also while it fails
            return None


def _live_record(
    session: Session, saved: Collection[str], values: Snapshot | None
) -> SessionRecord:
    return SessionRecord(
        session.id, session.header, live=True, stored=session.id in saved, projections=values
    )


def _stored_record(item: StoredSession, values: Snapshot | None) -> SessionRecord:
    return SessionRecord(
        SessionId(item.name),
        item.header,
        live=False,
        stored=True,
        problem=item.problem,
        projections=values,
    )


def _age(record: SessionRecord) -> tuple[bool, int, str]:
    header = record.header
    return (header is None, 0 if header is None else header.created_at, record.id)
