"""Which sessions a session may look into: those of its directory, those below it, and itself."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath

import attrs

from heald import CancelToken
from heald_agent import ToolContext
from heald_query import (
    EventWindow,
    Relatives,
    SearchFilter,
    SessionFilter,
    SessionQuery,
    SessionRecord,
    session_query,
)
from heald_session import LogOffset, SessionId, SessionNotFound


@attrs.frozen
class Sight:
    """What one session may see; what it may not is to it as what is not there."""

    query: SessionQuery
    own: SessionId
    cwd: str | None
    """The directory; None if the session has none, or one that does not say where it is."""
    cancel: CancelToken

    @classmethod
    def of(cls, context: ToolContext) -> Sight:
        """Return what the calling session may see."""
        session = context.agent.session
        cwd = session.header.cwd
        absolute = cwd is not None and PurePosixPath(cwd).is_absolute()
        query = session.scope.require(session_query)
        return cls(query, session.id, cwd if absolute else None, context.cancel)

    async def records(self, keys: Collection[str] = ()) -> dict[SessionId, SessionRecord]:
        """Return the sessions that may be seen, with values of the projections named by `keys`."""
        where = SessionFilter(cwd=self.cwd)
        records = await self.query.list_sessions(where, keys=keys, cancel=self.cancel)
        return {record.id: record for record in records if self.cwd or record.id == self.own}

    async def window(self, record: SessionRecord, start: int, stop: int) -> EventWindow:
        """Read events of a session that may be seen; raises `SessionNotFound` if it is gone."""
        try:
            window = await self.query.read_window(
                record.id, LogOffset(start), LogOffset(stop), cancel=self.cancel
            )
        except SessionNotFound:
            raise SessionNotFound(record.id) from None  # without the ids it may name
        if record.header is None or window.header.log_id != record.header.log_id:
            raise SessionNotFound(record.id)  # another took its place meanwhile
        return window

    async def relatives(self, id: SessionId) -> Relatives:  # noqa: A002
        """Trace the lineage of a session that may be seen, through all others."""
        try:
            return await self.query.relatives(id, cancel=self.cancel)
        except SessionNotFound:
            raise SessionNotFound(id) from None

    def search_filter(self) -> SearchFilter:
        """Return the filter of a search."""
        if self.cwd is None:
            return SearchFilter(sessions=frozenset({self.own}))
        return SearchFilter(cwd=self.cwd)
