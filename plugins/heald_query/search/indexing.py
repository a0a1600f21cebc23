"""Brings the index up to what the logs hold, piece by piece."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing, suppress

import attrs

from heald import Cancelled, CancelToken, HealdError, Scope, raise_if_cancelled
from heald_persistence import StoredSession, session_persistence
from heald_query.search import index
from heald_query.search.index import Indexed, Piece
from heald_query.search.sources import LiveSource, StoredSource, pieces
from heald_session import Session, SessionId, SessionNotFound, session_store
from heald_sqlite import DerivedDatabase

_logger = logging.getLogger("heald_query")

_TOGETHER = 500
"""How many documents are kept in one transaction: a search waits for no more than one."""
_PIECES = 200
"""How many pieces are, of sessions that are short."""
_ROUNDS = 5
"""How often sessions are tried that another process indexes at the same time."""

Waiting = dict[SessionId, AsyncGenerator[Piece, None]]
"""What is to be read, by session."""


@attrs.frozen
class Covered:
    """What the index covers after a pass."""

    sessions: int
    unread: frozenset[SessionId]
    """Sessions that it does not cover, or not wholly."""


class _Dropped(Exception):
    """A write was dropped, as while another process keeps the database to itself."""


class Pass:
    """One pass over what was logged since the last."""

    def __init__(
        self,
        scope: Scope,
        database: DerivedDatabase,
        on_progress: Callable[[int, int], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> None:
        self._scope = scope
        self._database = database
        self._on_progress = on_progress
        self._cancel = cancel
        self._known: dict[SessionId, Indexed] = {}
        self._pieces: list[Piece] = []
        self._missing: set[SessionId] = set()
        """Sessions that are not indexed to their end yet."""
        self._lost: set[SessionId] = set()
        """Those of which another process has just kept something."""

    async def run(self) -> Covered:
        """Index all that changed, and forget what is gone."""
        unreadable: set[SessionId] = set()
        try:
            for _ in range(_ROUNDS):
                waiting, unreadable = await self._plan()
                await self._index(waiting)
                if not self._lost:
                    break
        except _Dropped:
            pass
        count, damaged = await self._database.read(index.damaged) or (0, frozenset())
        return Covered(count, damaged | unreadable | self._missing)

    async def follow(self, sessions: Collection[Session]) -> None:
        """Index what was made durable of some live sessions."""
        await self._recall([session.id for session in sessions])
        with suppress(_Dropped):
            await self._index(self._grown(sessions))

    async def _plan(self) -> tuple[Waiting, set[SessionId]]:
        """Return what is to be read, and which sessions cannot be; forget those that are gone."""
        await self._recall()
        known = self._known
        store, storage = self._scope.find(session_store), self._scope.find(session_persistence)
        live = {session.id: session for session in (store.live() if store is not None else ())}
        waiting = self._grown(live.values())
        gone, unreadable = frozenset(known), set[SessionId]()
        if storage is not None:
            stamps: dict[str, str] = {id_: row.stamp or "" for id_, row in known.items()}
            survey = await storage.survey(stamps, logs=True, cancel=self._cancel)
            gone = frozenset(map(SessionId, survey.gone))
            changed = {SessionId(item.name): item for item in survey.changed}
            unreadable = {id_ for id_, item in changed.items() if item.header is None}
            for id_, item in changed.items():
                if item.header is not None and id_ not in live:
                    waiting[id_] = self._of_stored(item, known.get(id_))
        self._missing = set(waiting)
        await self._forget(gone - live.keys())
        return waiting, unreadable - live.keys()

    def _grown(self, sessions: Collection[Session]) -> Waiting:
        waiting: Waiting = {}
        for session in sessions:
            source, row = LiveSource(session, self._cancel), self._known.get(session.id)
            if source.end if row is None else not _is_at(row, source):
                waiting[session.id] = pieces(source, row)
        return waiting

    async def _of_stored(
        self, item: StoredSession, row: Indexed | None
    ) -> AsyncGenerator[Piece, None]:
        storage = self._scope.require(session_persistence)
        async with await storage.read(SessionId(item.name), cancel=self._cancel) as log:
            source = StoredSource(log, item.stamp, self._cancel)
            async with aclosing(pieces(source, row)) as made:
                async for piece in made:
                    yield piece

    async def _index(self, waiting: Waiting) -> None:
        self._pieces, self._lost, self._missing = [], set(), set(waiting)
        for done, (id_, made) in enumerate(waiting.items()):
            self._tell(done, len(waiting))
            try:
                await self._take(id_, made)
            except SessionNotFound:  # it was deleted meanwhile, and the next pass forgets it
                self._missing.discard(id_)
            except Cancelled:
                raise
            except (HealdError, OSError) as error:
                _logger.info("session %s was not indexed: %s", id_, error)
        await self._keep()
        self._tell(len(waiting), len(waiting))

    async def _take(self, id_: SessionId, made: AsyncGenerator[Piece, None]) -> None:
        async with aclosing(made):
            async for piece in made:
                if piece.before is None and id_ in self._known:
                    await self._forget([id_])
                self._pieces.append(piece)
                documents = sum(len(piece.documents) for piece in self._pieces)
                if documents >= _TOGETHER or len(self._pieces) >= _PIECES:
                    await self._keep()
                    raise_if_cancelled(self._cancel)
                if id_ in self._lost:
                    return

    async def _keep(self) -> None:
        kept, self._pieces = self._pieces, []
        unfit: list[set[SessionId]] = []
        if not kept:
            return
        if not await self._database.write(lambda c: unfit.append(index.add(c, kept))):
            raise _Dropped
        self._lost |= unfit[-1]
        self._missing -= {piece.header.id for piece in kept if piece.last} - self._lost

    async def _forget(self, ids: Collection[SessionId]) -> None:
        for id_ in ids:
            self._known.pop(id_, None)
        if not await forget(self._database, ids):
            raise _Dropped

    async def _recall(self, ids: Collection[SessionId] | None = None) -> None:
        self._known = await self._database.read(lambda c: index.remembered(c, ids)) or {}

    def _tell(self, done: int, total: int) -> None:
        raise_if_cancelled(self._cancel)
        if self._on_progress is not None and total:
            self._on_progress(done, total)


async def forget(database: DerivedDatabase, ids: Collection[SessionId]) -> bool:
    """Forget sessions, piece by piece; return False if a write was dropped."""
    done: list[bool] = [not ids]
    while not done[-1]:
        if not await database.write(lambda c: done.append(index.forget(c, ids))):
            return False
    return True


def _is_at(row: Indexed, source: LiveSource) -> bool:
    mark = row.watermark
    return (mark.log_id, mark.offset) == (source.header.log_id, source.end)
