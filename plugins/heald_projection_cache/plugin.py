"""The projection cache row."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from heald import NoConfig, Plugin, RowContext, host_closing, implements
from heald_doctor import Check, checks
from heald_persistence import session_deleted
from heald_projection import projections
from heald_projection_cache.audit import checkpoints_check
from heald_projection_cache.checkpoints import Checkpoints
from heald_projection_cache.contracts import ProjectionCache
from heald_projection_cache.hookspecs import projection_cache
from heald_projection_cache.occasions import Occasions
from heald_projection_cache.rows import SCHEMA
from heald_session import Event, Session, SessionId, event_appended, session_closed, session_store
from heald_sqlite import DerivedDatabase


class ProjectionCachePlugin(Plugin[NoConfig]):
    """Checkpoints sessions as turns end and go on, when they close, and when the host stops."""

    requires = (session_store, projections)

    def __init__(self, context: RowContext[NoConfig]) -> None:
        super().__init__(context)
        host = context.scope.host
        self._database = DerivedDatabase(host.home / "cache", SCHEMA)
        self._checkpoints = Checkpoints(host, self._database)

    async def start(self) -> None:
        await self.stack.enter_async_context(self._database)
        tasks = await self.stack.enter_async_context(asyncio.TaskGroup())
        self._occasions = Occasions(self._checkpoints, tasks)

    async def stop(self) -> None:
        """Save what other rows did while the host was closing, or all if only this row stops."""
        for session in self.scope.require(session_store).live():
            if not self._checkpoints.has_all_of(session):
                await self._checkpoints.save(session)

    @implements(projection_cache)
    def provide_cache(self) -> ProjectionCache:
        return self._checkpoints

    @implements(checks)
    def contribute_checks(self) -> Iterable[Check]:
        return (checkpoints_check(self.scope, self._database, self._checkpoints),)

    @implements(event_appended)
    def save_in_time(self, session: Session, event: Event) -> None:
        self._occasions.appended(session, event)

    @implements(host_closing)
    async def save_every_session(self) -> None:
        """Save what is live while every row that a save needs still runs."""
        for session in self.scope.require(session_store).live():
            await self._checkpoints.save(session)

    @implements(session_closed)
    async def save_at_close(self, session: Session) -> None:
        await self._checkpoints.save(session)

    @implements(session_deleted)
    async def forget_deleted(self, id: SessionId) -> None:  # noqa: A002
        await self._checkpoints.forget(id)
