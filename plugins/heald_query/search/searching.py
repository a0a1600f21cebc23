"""The search: brings the index up to date, then asks it."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Self

from heald import CancelToken, HealdError, Scope, raise_if_cancelled
from heald_persistence import lasting_persistence
from heald_query.search import index
from heald_query.search.contracts import SearchFilter, SearchHit, SearchPage
from heald_query.search.finding import Found, find
from heald_query.search.index import SCHEMA
from heald_query.search.indexing import Covered, Pass, forget
from heald_query.search.obstacles import obstacle
from heald_query.search.snippets import snippet
from heald_query.search.typed_text import Typed
from heald_session import Session, SessionId
from heald_sqlite import DerivedDatabase

_logger = logging.getLogger("heald_query")

PAUSE = 1.0
"""Seconds that a turn's end waits for others before what was logged is indexed."""


class Searching:
    """Finds texts in every session, with an index that may be deleted at any time.

    Use it as an async context manager; nothing is opened before it is needed.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._stack = AsyncExitStack()
        self._databases: dict[bool, DerivedDatabase] = {}
        """By whether the logs outlive the process: of those that do not, none is written down."""
        self._opening = asyncio.Lock()
        self._passing = asyncio.Lock()
        self._grown: dict[SessionId, Session] = {}
        self._has_grown = asyncio.Event()

    async def __aenter__(self) -> Self:
        following = asyncio.create_task(self._follow(), name="indexing of live sessions")
        self._stack.push_async_callback(_ended, following)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def search(
        self,
        text: str,
        where: SearchFilter,
        limit: int,
        on_progress: Callable[[int, int], None] | None,
        cancel: CancelToken | None,
    ) -> SearchPage:
        """Find what has every word and phrase of what was typed."""
        raise_if_cancelled(cancel)
        typed = Typed.parse(text)
        covered, (found, total) = await self._found(typed, where, limit, on_progress, cancel)
        raise_if_cancelled(cancel)
        hits = await asyncio.to_thread(lambda: [_hit(one, typed) for one in found])
        unread = covered.unread
        if where.sessions is not None:
            unread &= where.sessions
        return SearchPage(tuple(hits), total, tuple(sorted(unread)))

    def follow(self, session: Session) -> None:
        """Index a live session in the background, together with others, when it has flushed."""
        self._grown[session.id] = session
        self._has_grown.set()

    async def forget(self, id_: SessionId) -> None:
        """Forget a session that was deleted."""
        database = await self.opened()
        if await database.read(index.has_any):
            await forget(database, [id_])

    async def opened(self) -> DerivedDatabase:
        """Return the index, which is kept where the logs are, unless it cannot be."""
        lasts = lasting_persistence(self._scope) is not None
        async with self._opening:
            if lasts not in self._databases:
                self._databases[lasts] = await self._open(lasts)
            return self._databases[lasts]

    async def catch_up(
        self,
        on_progress: Callable[[int, int], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> Covered:
        """Index all that was logged since the last time."""
        async with self._passing:
            raise_if_cancelled(cancel)
            return await Pass(self._scope, await self.opened(), on_progress, cancel).run()

    async def rebuild(self, on_progress: Callable[[int, int], None]) -> None:
        """Forget the index and make it anew."""
        async with self._passing:
            await (await self.opened()).reset()
        await self.catch_up(on_progress)

    async def _found(
        self,
        typed: Typed,
        where: SearchFilter,
        limit: int,
        on_progress: Callable[[int, int], None] | None,
        cancel: CancelToken | None,
    ) -> tuple[Covered, tuple[Sequence[Found], int]]:
        """Ask the index, once more if it had to be begun anew between the pass and the question."""
        covered, found = await self._asked(typed, where, limit, on_progress, cancel)
        if found is None and covered.sessions:
            covered, found = await self._asked(typed, where, limit, on_progress, cancel)
        return covered, found or ((), 0)

    async def _asked(
        self,
        typed: Typed,
        where: SearchFilter,
        limit: int,
        on_progress: Callable[[int, int], None] | None,
        cancel: CancelToken | None,
    ) -> tuple[Covered, tuple[Sequence[Found], int] | None]:
        covered = await self.catch_up(on_progress, cancel)
        return covered, await (await self.opened()).read(
            lambda c: find(c, typed, where, limit) if index.has_any(c) else None
        )

    async def _follow(self) -> None:
        while True:
            await self._has_grown.wait()
            await asyncio.sleep(PAUSE)
            self._has_grown.clear()
            grown, self._grown = self._grown, {}
            try:
                for session in grown.values():
                    with suppress(HealdError):
                        await session.flush()
                async with self._passing:
                    await Pass(self._scope, await self.opened()).follow(grown.values())
            except Exception:
                _logger.exception("what was logged was not indexed; the next search does it")

    async def _open(self, lasts: bool) -> DerivedDatabase:  # noqa: FBT001 - it is what is asked
        place = self._scope.host.home / "cache"
        if lasts and (reason := await asyncio.to_thread(obstacle, place)) is not None:
            message = "no search index is kept: %s; each run makes its own"
            _logger.warning(message, reason)
            lasts = False
        database = DerivedDatabase(place if lasts else self._nowhere(), SCHEMA)
        return await self._stack.enter_async_context(database)

    def _nowhere(self) -> Path:
        directory = tempfile.TemporaryDirectory(prefix="heald-", ignore_cleanup_errors=True)
        return Path(self._stack.enter_context(directory))


def _hit(found: Found, typed: Typed) -> SearchHit:
    cut = snippet(found.text, typed)
    return SearchHit(found.session, found.seq, found.time, found.role, cut)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
