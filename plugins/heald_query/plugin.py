"""The query row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from heald import CancelToken, NoConfig, Plugin, RowContext, implements
from heald_doctor import Check, checks
from heald_persistence import session_deleted
from heald_projection import Snapshot
from heald_query.contracts import (
    EventWindow,
    Observation,
    Order,
    Position,
    Relatives,
    SessionFilter,
    SessionQuery,
    SessionRecord,
)
from heald_query.corpus import Corpus
from heald_query.corpus_check import corpus_check
from heald_query.corpus_rows import SCHEMA
from heald_query.hookspecs import session_query
from heald_query.reading import Reader
from heald_query.search.check import search_check
from heald_query.search.contracts import SearchFilter, SearchPage
from heald_query.search.searching import Searching
from heald_query.stored_sessions import StoredSessions
from heald_session import Event, Header, LogOffset, Session, SessionId, event_appended
from heald_sqlite import DerivedDatabase


class QueryPlugin(Plugin[NoConfig]):
    """Finds and reads sessions; what it reads them from is looked up at each call."""

    def __init__(self, context: RowContext[NoConfig]) -> None:
        super().__init__(context)
        self._database = DerivedDatabase(context.scope.host.home / "cache", SCHEMA)
        self._stored = StoredSessions(context.scope, self._database)
        self._corpus = Corpus(context.scope, self._stored)
        self._reader = Reader(context.scope, self._corpus, self._stored)
        self._searching = Searching(context.scope)

    async def start(self) -> None:
        await self.stack.enter_async_context(self._database)
        self.stack.push_async_callback(self._stored.settle)
        await self.stack.enter_async_context(self._searching)

    @implements(session_query)
    def provide_query(self) -> SessionQuery:
        return self

    @implements(event_appended)
    def index_after_turn(self, session: Session, event: Event) -> None:
        if event.type == "turn/end":
            self._searching.follow(session)

    @implements(session_deleted)
    async def forget_deleted(self, id: SessionId) -> None:  # noqa: A002
        await self._searching.forget(id)

    @implements(checks)
    def contribute_checks(self) -> Iterable[Check]:
        """Have the corpus and the search index compared with what is stored."""
        return [
            corpus_check(self.scope, self._stored),
            search_check(self.scope, self._searching),
        ]

    async def list_sessions(
        self,
        where: SessionFilter | None = None,
        *,
        order: Order = "created",
        limit: int | None = None,
        after: Position | None = None,
        keys: Collection[str] = (),
        cancel: CancelToken | None = None,
    ) -> Sequence[SessionRecord]:
        """Return sessions of one snapshot."""
        return await self._corpus.list(
            where, order=order, limit=limit, after=after, keys=keys, cancel=cancel
        )

    async def known_values(
        self,
        headers: Iterable[Header],
        keys: Collection[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Mapping[SessionId, Snapshot]:
        """Return what cells and checkpoints know of sessions."""
        return await self._corpus.known_values(headers, keys, cancel)

    def observe_session(
        self,
        id: SessionId,  # noqa: A002
        keys: Collection[str] = (),
        *,
        at: LogOffset | None = None,
        cancel: CancelToken | None = None,
    ) -> AbstractAsyncContextManager[Observation]:
        """Read one session at one cut."""
        return self._reader.observe(id, keys, at, cancel)

    async def read_window(
        self,
        id: SessionId,  # noqa: A002
        start: LogOffset,
        stop: LogOffset,
        *,
        types: Collection[str] = (),
        cancel: CancelToken | None = None,
    ) -> EventWindow:
        """Read some events of one session."""
        return await self._reader.window(id, start, stop, types, cancel)

    async def relatives(
        self,
        id: SessionId,  # noqa: A002
        *,
        keys: Collection[str] = (),
        cancel: CancelToken | None = None,
    ) -> Relatives:
        """Trace a session's lineage."""
        return await self._corpus.relatives(id, keys, cancel)

    async def search(
        self,
        text: str,
        where: SearchFilter | None = None,
        *,
        limit: int = 20,
        on_progress: Callable[[int, int], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> SearchPage:
        """Find what has every word and phrase of a text."""
        where = where if where is not None else SearchFilter()
        return await self._searching.search(text, where, limit, on_progress, cancel)
