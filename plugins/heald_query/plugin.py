"""The query row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager

from heald import CancelToken, NoConfig, Plugin, RowContext, implements
from heald_query.contracts import Observation, SessionQuery, SessionRecord
from heald_query.corpus import Corpus
from heald_query.hookspecs import session_query
from heald_query.reading import Reader
from heald_session import LogOffset, SessionId


class QueryPlugin(Plugin[NoConfig]):
    """Finds and reads sessions; what it reads them from is looked up at each call."""

    def __init__(self, context: RowContext[NoConfig]) -> None:
        super().__init__(context)
        self._corpus = Corpus(context.scope)
        self._reader = Reader(context.scope, self._corpus)

    @implements(session_query)
    def provide_query(self) -> SessionQuery:
        return self

    async def list_sessions(
        self, *, keys: Collection[str] = (), cancel: CancelToken | None = None
    ) -> Sequence[SessionRecord]:
        """Return every session of one snapshot."""
        return await self._corpus.list(keys, cancel)

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
