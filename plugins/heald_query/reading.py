"""The one cold read of a session, and the same read of a live one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

from heald import Cancelled, CancelToken, Scope, raise_if_cancelled
from heald_persistence import Damage, StoredLog, session_persistence
from heald_projection import Fold, Projections, Snapshot, projections
from heald_projection_cache import Checkpoint, projection_cache
from heald_query.contracts import EventWindow, Observation
from heald_query.corpus import Corpus
from heald_query.errors import OffsetBeyondEnd
from heald_query.observations import LiveObservation, StoredObservation
from heald_query.stored_sessions import StoredSessions
from heald_query.windows import live_window, stored_window
from heald_session import LogOffset, Session, SessionId, SessionNotFound, after, session_store


class Reader:
    """Observes sessions; whatever it opens is let go on every path."""

    def __init__(self, scope: Scope, corpus: Corpus, stored: StoredSessions) -> None:
        self._scope = scope
        self._corpus = corpus
        self._stored = stored

    @asynccontextmanager
    async def observe(
        self,
        id: SessionId,  # noqa: A002
        keys: Collection[str],
        at: LogOffset | None,
        cancel: CancelToken | None,
    ) -> AsyncIterator[Observation]:
        """Read one session, from memory if it is live."""
        raise_if_cancelled(cancel)
        if (session := self._live(id)) is not None:
            yield await self._observe_live(session, keys, at, cancel)
            return
        async with await self._open(id, cancel, self._ahead(keys)) as log:
            raise_if_cancelled(cancel)
            self._stored.learn(log.header, log.cut)
            yield await self._observe_stored(log, keys, at, cancel)

    async def window(
        self,
        id: SessionId,  # noqa: A002
        start: LogOffset,
        stop: LogOffset,
        types: Collection[str],
        cancel: CancelToken | None,
    ) -> EventWindow:
        """Read some events of one session, from memory if it is live."""
        raise_if_cancelled(cancel)
        if (session := self._live(id)) is not None:
            return await live_window(session, start, stop, types, cancel)
        async with await self._open(id, cancel) as log:
            return await stored_window(log, start, stop, types, cancel)

    def _live(self, id: SessionId) -> Session | None:  # noqa: A002
        store = self._scope.find(session_store)
        return store.get(id) if store is not None else None

    def _ahead(self, keys: Collection[str]) -> Collection[str] | None:
        """Return the types that are wanted from the first event on: no checkpoint can tell them."""
        if not keys or self._scope.find(projection_cache) is not None:
            return None
        return self._scope.require(projections).event_types(keys)

    async def _open(
        self,
        id: SessionId,  # noqa: A002
        cancel: CancelToken | None,
        ahead: Collection[str] | None = None,
    ) -> StoredLog:
        persistence = self._scope.find(session_persistence)
        try:
            if persistence is not None:
                return await persistence.read(id, ahead=ahead, cancel=cancel)
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
        raise_if_cancelled(cancel)
        if at is not None and at < session.end:
            fold = service.fold(session.header, session.cut, keys)
            async for event in session.read(LogOffset(0), at):
                raise_if_cancelled(cancel)
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
        service = self._scope.require(projections)
        fold = await self._from_checkpoint(service, log, keys, at, cancel)
        if fold is None:
            fold = service.fold(log.header, log.cut, keys)
            await _feed(fold, log, fold.start, at, cancel)
        raise_if_cancelled(cancel)
        return StoredObservation(log, end, fold.snapshot(end), _states(fold, keys), cancel)

    async def _from_checkpoint(
        self,
        service: Projections,
        log: StoredLog,
        keys: Collection[str],
        at: LogOffset | None,
        cancel: CancelToken | None,
    ) -> Fold | None:
        """Fold on from a checkpoint, if there is one that fits; one the log belies is dropped."""
        cache = self._scope.find(projection_cache)
        if cache is None:
            return None
        try:
            kept = await cache.checkpoint(log.header, log.cut, keys, cancel=cancel)
        except Cancelled:
            raise
        except Exception:  # noqa: BLE001 - a cache is optional, also while it fails
            return None
        end = log.end if at is None else at
        if kept is None or not kept.states or end < kept.offset <= log.end:
            return None
        fold = service.fold(log.header, log.cut, keys, kept.states)
        if kept.offset <= log.end and await _followed(kept, fold, log, at, cancel):
            return fold
        await cache.drop(log.header, kept)
        return None


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
    fold: Fold,
    log: StoredLog,
    start: LogOffset,
    at: LogOffset | None,
    cancel: CancelToken | None,
) -> None:
    """Feed what comes before `at`; without it all there is, damage behind the last event too."""
    types = fold.event_types
    if (types is not None and not types) or (at is not None and start >= at):
        return
    async for batch in log.batches(start, at, types=types, cancel=cancel):
        for event in batch:
            fold.feed(event)


async def _followed(
    kept: Checkpoint,
    fold: Fold,
    log: StoredLog,
    at: LogOffset | None,
    cancel: CancelToken | None,
) -> bool:
    """Feed what comes after a checkpoint, and say whether the log bears it out.

    The block that has the checkpoint's last event is read once, for both.
    """
    damages: list[Damage] = []
    last = LogOffset(kept.offset - 1)
    reading = log.batches(last, at, on_damage=damages.append, cancel=cancel)
    async with aclosing(reading) as batches:  # type: ignore[type-var]
        block = await anext(batches, None)  # Python cannot return an empty tuple from here
    if not block or not kept.follows(block[0]):
        return False
    start = fold.start
    if start == kept.offset and not damages:
        for event in block[1:]:
            fold.feed(event)
        start = after(block[-1].seq)
    await _feed(fold, log, start, at, cancel)
    return True


def _states(fold: Fold, keys: Collection[str]) -> dict[str, Any]:
    states = {}
    for key in keys:
        with suppress(KeyError):  # no unit has it
            states[key] = fold.state(key)
    return states
