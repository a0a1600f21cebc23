"""The projection cache row."""

from __future__ import annotations

import asyncio

from heald import NoConfig, Plugin, RowContext, implements
from heald_projection import projections
from heald_projection_cache.checkpoints import Checkpoints
from heald_projection_cache.contracts import ProjectionCache
from heald_projection_cache.database import Database
from heald_projection_cache.hookspecs import projection_cache
from heald_session import Event, Session, event_appended, session_closed, session_store


class ProjectionCachePlugin(Plugin[NoConfig]):
    """Checkpoints sessions when a turn ends, when they close, and when the host stops."""

    requires = (session_store, projections)

    def __init__(self, context: RowContext[NoConfig]) -> None:
        super().__init__(context)
        host = context.scope.host
        self._database = Database(host.home / "cache")
        self._checkpoints = Checkpoints(host, self._database)

    async def start(self) -> None:
        await self.stack.enter_async_context(self._database)
        self._tasks = await self.stack.enter_async_context(asyncio.TaskGroup())

    async def stop(self) -> None:
        for session in self.scope.require(session_store).live():
            await self._checkpoints.save(session)

    @implements(projection_cache)
    def provide_cache(self) -> ProjectionCache:
        return self._checkpoints

    @implements(event_appended)
    def save_after_turn(self, session: Session, event: Event) -> None:
        if event.type == "turn/end":
            saving = self._checkpoints.save(session)
            self._tasks.create_task(saving, name=f"checkpoint of {session.id}")

    @implements(session_closed)
    async def save_at_close(self, session: Session) -> None:
        await self._checkpoints.save(session)
