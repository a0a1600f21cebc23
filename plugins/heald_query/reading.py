"""The one cold read of a session, and the same read of a live one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from typing import Any

from heald import Cancelled, CancelToken, HealdError, Scope
from heald_persistence import StoredLog, session_persistence
from heald_projection import Fold, Projections, Snapshot, projections
from heald_projection_cache import Checkpoint, projection_cache
from heald_query.contracts import Observation
from heald_query.corpus import Corpus
from heald_query.errors import OffsetBeyondEnd
from heald_query.observations import LiveObservation, StoredObservation, check
from heald_session import LogOffset, Session, SessionId, SessionNotFound, session_store


class Reader:
    """Observes sessions; whatever it opens is let go on every path."""

    def __init__(self, scope: Scope, corpus: Corpus) -> None:
        self._scope = scope
        self._corpus = corpus

    @asynccontextmanager
    async def observe(
        self,
        id: SessionId,  # noqa: A002
        keys: Collection[str],
        at: LogOffset | None,
        cancel: CancelToken | None,
    ) -> AsyncIterator[Observation]:
        """Read one session, from memory if it is live."""
        check(cancel)
        store = self._scope.find(session_store)
        session = store.get(id) if store is not None else None
        if session is not None:
            yield await self._observe_live(session, keys, at, cancel)
            return
        async with await self._open(id, cancel) as log:
            check(cancel)
            yield await self._observe_stored(log, keys, at, cancel)

    async def _open(self, id: SessionId, cancel: CancelToken | None) -> StoredLog:  # noqa: A002
        persistence = self._scope.find(session_persistence)
        try:
            if persistence is not None:
                return await persistence.read(id, cancel=cancel)
        except SessionNotFound:
            pass
        raise SessionNotFound(id, await self._corpus.near(id, cancel))

    async def _observe_live(
        self,
        session: Session,
        keys: Collection[str],
        at: LogOffset | None,
        cancel: CancelToken | None,
    ) -> Observation:
        end = _end(session.id, at, session.end)
        if not keys:
            return LiveObservation(session, end, Snapshot(end - 1, {}), {}, cancel)
        service = session.scope.require(projections)
        await service.ready(session, keys)
        check(cancel)
        if at is not None and at < session.end:
            fold = service.fold(session.header, session.cut, keys)
            async for event in session.read(LogOffset(0), at):
                check(cancel)
                fold.feed(event)
            return LiveObservation(session, at, fold.snapshot(at), _states(fold, keys), cancel)
        return _at_its_end(session, service, keys, cancel)

    async def _observe_stored(
        self,
        log: StoredLog,
        keys: Collection[str],
        at: LogOffset | None,
        cancel: CancelToken | None,
    ) -> Observation:
        end = _end(log.header.id, at, log.end)
        if not keys:
            return StoredObservation(log, end, Snapshot(end - 1, {}), {}, cancel)
        kept = await self._fitting(log, keys, end, cancel)
        service = self._scope.require(projections)
        fold = service.fold(log.header, log.cut, keys, kept.states if kept is not None else ())
        await _feed(fold, log, at, cancel)
        check(cancel)
        return StoredObservation(log, end, fold.snapshot(end), _states(fold, keys), cancel)

    async def _fitting(
        self, log: StoredLog, keys: Collection[str], end: LogOffset, cancel: CancelToken | None
    ) -> Checkpoint | None:
        """Return the checkpoint that the fold may start from; one the log belies is dropped."""
        cache = self._scope.find(projection_cache)
        if cache is None:
            return None
        try:
            kept = await cache.checkpoint(log.header, log.cut, keys, cancel=cancel)
        except Cancelled:
            raise
        except Exception:  # noqa: BLE001 - a cache is optional, also while it fails
            return None
        if kept is None or not kept.states or end < kept.offset <= log.end:
            return None
        if kept.offset > log.end or not await _follows(kept, log, cancel):
            await cache.drop(log.header, kept)
            return None
        return kept


def _end(id: SessionId, at: LogOffset | None, end: LogOffset) -> LogOffset:  # noqa: A002
    if at is not None and not 0 <= at <= end:
        raise OffsetBeyondEnd(id, at, end)
    return end if at is None else at


def _at_its_end(
    session: Session, service: Projections, keys: Collection[str], cancel: CancelToken | None
) -> Observation:
    """Observe a live session as it is: nothing waits here, so everything is of one cut."""
    snapshot = service.snapshot(session, keys)
    states = {}
    for key in keys:
        with suppress(KeyError):  # no unit has it
            states[key] = service.state(session, key)
    return LiveObservation(session, session.end, snapshot, states, cancel)


async def _feed(
    fold: Fold, log: StoredLog, at: LogOffset | None, cancel: CancelToken | None
) -> None:
    """Feed what comes before `at`; without it all there is, damage behind the last event too."""
    types = fold.event_types
    if (types is not None and not types) or (at is not None and fold.start >= at):
        return
    async for batch in log.batches(fold.start, at, types=types, cancel=cancel):
        for event in batch:
            fold.feed(event)


async def _follows(kept: Checkpoint, log: StoredLog, cancel: CancelToken | None) -> bool:
    last = LogOffset(kept.offset - 1)
    try:
        async for batch in log.batches(last, kept.offset, cancel=cancel):
            for event in batch:
                return kept.follows(event)
    except Cancelled:
        raise
    except HealdError:  # damaged there: what the keys need may be sound all the same
        pass
    return False


def _states(fold: Fold, keys: Collection[str]) -> dict[str, Any]:
    states = {}
    for key in keys:
        with suppress(KeyError):  # no unit has it
            states[key] = fold.state(key)
    return states
