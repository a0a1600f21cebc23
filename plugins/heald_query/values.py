"""The projections beside the records of a list: live from cells, cold from checkpoints."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs

from heald import Cancelled, CancelToken, HealdError, Scope
from heald_projection import Snapshot, projections
from heald_projection_cache import projection_cache
from heald_query.contracts import SessionRecord
from heald_query.corpus_rows import Kept
from heald_session import Header, LogOffset, Session, SessionId


@attrs.frozen
class Values:
    """Where the projections of the sessions of one list come from."""

    _scope: Scope
    _live: Mapping[SessionId, Session]
    _kept: Mapping[str, Kept]

    async def beside(
        self,
        records: Sequence[SessionRecord],
        keys: Collection[str],
        cancel: CancelToken | None,
    ) -> list[SessionRecord]:
        """Return the records with what is known of the keys; storage is asked once."""
        if not keys:
            return [r if r.projections is None else _with(r, None) for r in records]
        found: dict[SessionId, Snapshot | None] = {
            record.id: _snapshot(self._live[record.id], keys) for record in records if record.live
        }
        found |= await self._cold([record for record in records if not record.live], keys, cancel)
        return [_with(record, found.get(record.id)) for record in records]

    async def _cold(
        self,
        records: Sequence[SessionRecord],
        keys: Collection[str],
        cancel: CancelToken | None,
    ) -> Mapping[SessionId, Snapshot]:
        cache = self._scope.find(projection_cache)
        logs = [log for record in records if (log := self._log(record)) is not None]
        if cache is None or not logs:
            return {}
        try:
            return await cache.cached_snapshots(logs, keys, cancel=cancel)
        except Cancelled:
            raise
        except Exception:  # noqa: BLE001 - a cache is optional, also while it fails
            return {}

    def _log(self, record: SessionRecord) -> tuple[Header, LogOffset] | None:
        """Return what a checkpoint is looked up by, if the exact cut is known."""
        header = record.header
        if header is None:
            return None
        cut = self._kept[record.id].cut if header.is_seeded else LogOffset(0)
        return None if cut is None else (header, cut)


def _snapshot(session: Session, keys: Collection[str]) -> Snapshot | None:
    """Return the values of a live session; what cannot be told is absent."""
    service = session.scope.find(projections)
    if service is None:
        return None
    try:
        return service.snapshot(session, keys)
    except HealdError:  # a row says what is known; whoever selects the key is told
        pass
    values: dict[str, Any] = {}
    for key in keys:
        try:
            values |= service.snapshot(session, (key,)).values
        except HealdError:
            continue
    return Snapshot(session.end - 1, values)


def _with(record: SessionRecord, values: Snapshot | None) -> SessionRecord:
    return SessionRecord(
        record.id, record.header, record.live, record.stored, record.problem, values
    )
