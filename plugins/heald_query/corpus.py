"""The list of every session: live ones as they are, stored ones as they were left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import attrs

from heald import CancelToken, Scope, raise_if_cancelled
from heald_projection import Snapshot
from heald_query.contracts import Order, Position, Relatives, SessionFilter, SessionRecord
from heald_query.lineage import relatives_of
from heald_query.naming import near
from heald_query.selection import ACTIVITY, PRESET, matching, page_of, runs
from heald_query.stored_sessions import Memory, StoredSessions
from heald_query.values import Values
from heald_session import Header, Session, SessionId, session_store

T = TypeVar("T")

_EVERYTHING = SessionFilter()
_FEW = 10_000
"""So many take no longer than a few milliseconds, and what a thread makes comes from afar."""


@attrs.frozen
class _Moment:
    """What was live and what was stored at one moment."""

    live: Mapping[SessionId, Session]
    memory: Memory

    async def work(self, what: Callable[[], T]) -> T:
        """Do what takes as long as there are sessions, in a thread if those are many."""
        if len(self.live) + len(self.memory.records) <= _FEW:
            return what()
        return await asyncio.to_thread(what)

    def matching(self, where: SessionFilter) -> list[SessionRecord]:
        """Return the records a filter takes, live preferred over stored."""
        live, kept = self.live, self.memory.kept
        records = [record for record in self.memory.records if record.id not in live]
        records += [
            SessionRecord(id_, session.header, live=True, stored=id_ in kept)
            for id_, session in live.items()
        ]
        return records if where == _EVERYTHING else matching(records, where)

    def relatives(self, id: SessionId) -> Relatives:  # noqa: A002
        """Trace a session's lineage, siblings in the order of creation."""
        return relatives_of(page_of(self.matching(_EVERYTHING), "created", None, None), id)


class Corpus:
    """Lists the union of live and stored sessions; the services are found when it is asked."""

    def __init__(self, scope: Scope, stored: StoredSessions) -> None:
        self._scope = scope
        self._stored = stored

    async def list(
        self,
        where: SessionFilter | None = None,
        *,
        order: Order = "created",
        limit: int | None = None,
        after: Position | None = None,
        keys: Collection[str] = (),
        cancel: CancelToken | None = None,
    ) -> Sequence[SessionRecord]:
        """Return the records of one page; what takes long is not done on the event loop."""
        if order == "-activity" and after is not None:
            raise ValueError("sessions move in the order of activity, so it has no pages")
        where = where or _EVERYTHING
        moment = await self._look(cancel)
        values = Values(self._scope, moment.live, moment.memory.kept)
        if where.preset is None and order != "-activity":
            page = await moment.work(lambda: page_of(moment.matching(where), order, limit, after))
        else:
            found = await moment.work(lambda: moment.matching(where))
            valued = await _valued(found, where, order, values, cancel)
            page = await moment.work(lambda: page_of(valued, order, limit, after))
        page = await values.beside(page, keys, cancel)
        raise_if_cancelled(cancel)
        return page

    async def known_values(
        self,
        headers: Iterable[Header],
        keys: Collection[str],
        cancel: CancelToken | None,
    ) -> Mapping[SessionId, Snapshot]:
        """Return what is known of sessions, listing nothing again."""
        raise_if_cancelled(cancel)
        live = {session.id: session for session in self._sessions()}
        values = Values(self._scope, live, self._stored.kept)
        found = await values.of(headers, keys, cancel)
        raise_if_cancelled(cancel)
        return found

    async def relatives(
        self,
        id: SessionId,  # noqa: A002
        keys: Collection[str],
        cancel: CancelToken | None,
    ) -> Relatives:
        """Trace a session's lineage."""
        moment = await self._look(cancel)
        values = Values(self._scope, moment.live, moment.memory.kept)
        found = await moment.work(lambda: moment.relatives(id))
        ancestors = await values.beside(found.ancestors, keys, cancel)
        descendants = await values.beside(found.descendants, keys, cancel)
        raise_if_cancelled(cancel)
        return Relatives(tuple(ancestors), found.missing, tuple(descendants))

    async def near(self, id: str, cancel: CancelToken | None) -> tuple[str, ...]:  # noqa: A002
        """Return the ids that an unknown one may have been meant to be; all if they are few."""
        records = await self.list(cancel=cancel)
        return await asyncio.to_thread(near, id, [record.id for record in records])

    async def _look(self, cancel: CancelToken | None) -> _Moment:
        """Look at storage; again if a session that was live meanwhile became a stored one."""
        while True:
            raise_if_cancelled(cancel)
            before = self._sessions()
            memory = await self._stored.look(cancel)
            raise_if_cancelled(cancel)
            now = self._sessions()
            live = {session.id: session for session in now}
            if now == before or all(s.id in live or s.id in memory.kept for s in before):
                return _Moment(live, memory)

    def _sessions(self) -> Sequence[Session]:
        store = self._scope.find(session_store)
        return () if store is None else store.live()


async def _valued(
    records: list[SessionRecord],
    where: SessionFilter,
    order: Order,
    values: Values,
    cancel: CancelToken | None,
) -> list[SessionRecord]:
    """Return the records that run the preset, with the values that the order is by."""
    if where.preset is not None:
        records = await values.beside(records, (PRESET,), cancel)
        records = [*filter(runs(where.preset), records)]
    if order == "-activity":
        records = await values.beside(records, (ACTIVITY,), cancel)
    return records
