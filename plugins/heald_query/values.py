"""The projections beside the records of a list: live from cells, cold from checkpoints."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
    """Where the projections of sessions come from at one moment."""

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
        headers = [record.header for record in records if record.header is not None]
        found = await self.of(headers, keys, cancel)
        return [_with(record, found.get(record.id)) for record in records]

    async def of(
        self,
        headers: Iterable[Header],
        keys: Collection[str],
        cancel: CancelToken | None,
    ) -> Mapping[SessionId, Snapshot]:
        """Return what is known of the keys, by session; storage is asked once."""
        found: dict[SessionId, Snapshot] = {}
        cold: list[Header] = []
        for header in headers:
            session = self._live.get(header.id)
            if session is None:
                cold.append(header)
            elif session.header.log_id == header.log_id and (known := _snapshot(session, keys)):
                found[header.id] = known
        return {**found, **await self._cold(cold, keys, cancel)}

    async def _cold(
        self,
        headers: Sequence[Header],
        keys: Collection[str],
        cancel: CancelToken | None,
    ) -> Mapping[SessionId, Snapshot]:
        cache = self._scope.find(projection_cache)
        logs = [log for header in headers if (log := self._log(header)) is not None]
        if cache is None or not logs:
            return {}
        try:
            return await cache.cached_snapshots(logs, keys, cancel=cancel)
        except Cancelled:
            raise
        except Exception:  # noqa: BLE001 - a cache is optional, also while it fails
            return {}

    def _log(self, header: Header) -> tuple[Header, LogOffset] | None:
        """Return what a checkpoint is looked up by, if the exact cut is known."""
        if not header.is_seeded:
            return header, LogOffset(0)
        kept = self._kept.get(header.id)
        return None if kept is None or kept.cut is None else (header, kept.cut)


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
