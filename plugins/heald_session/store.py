"""The live sessions of this process: made, forked, resumed, published and disposed of here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import attrs

from heald import Composition, HealdError, Host, Scope
from heald_persistence import (
    LogWriter,
    SessionNotSaved,
    SessionPersistence,
    session_persistence,
)
from heald_session.contracts import Session
from heald_session.errors import CutInvalid, SessionIdTaken, SessionNotFound
from heald_session.events import NewEvent
from heald_session.filling import inherit, load
from heald_session.forks import checked_cut, forked_header, refuse_inside_a_turn
from heald_session.header import FORMAT_VERSION, Header
from heald_session.hookspecs import session_closed, session_opened, session_prepared
from heald_session.ids import checked_header, checked_id, new_id, new_log_id
from heald_session.live import LiveSession
from heald_session.origins import LiveOrigin, Origin
from heald_session.positions import LogOffset, SessionId
from heald_session.vocabulary import EventTypes
from heald_session.window import WindowLimits


@attrs.define(eq=False)
class LiveSessions:
    """The session store."""

    _host: Host
    _logger: logging.Logger
    _limits: WindowLimits
    _types: EventTypes = attrs.field(
        init=False, default=attrs.Factory(lambda self: EventTypes(self._host), takes_self=True)
    )
    _live: dict[SessionId, LiveSession] = attrs.field(init=False, factory=dict)
    _making: set[SessionId] = attrs.field(init=False, factory=set)
    _resuming: dict[SessionId, asyncio.Task[LiveSession]] = attrs.field(init=False, factory=dict)
    _disposing: dict[SessionId, asyncio.Task[None]] = attrs.field(init=False, factory=dict)

    def get(self, id: SessionId) -> Session | None:  # noqa: A002
        return self._live.get(id)

    def live(self) -> Sequence[Session]:
        return tuple(self._live.values())

    async def create(
        self,
        *,
        cwd: str | None,
        id: SessionId | None = None,  # noqa: A002
        parent_session: SessionId | None = None,
        delegation_depth: int = 0,
        origin: str | None = None,
        agent_preset: str | None = None,
        first: Sequence[NewEvent] = (),
        composition: Composition | None = None,
    ) -> Session:
        header = Header(
            version=FORMAT_VERSION,
            id=new_id() if id is None else checked_id(id),
            log_id=new_log_id(),
            created_at=self._host.now(),
            cwd=cwd,
            parent_session=parent_session,
            delegation_depth=delegation_depth,
            origin=origin,
            agent_preset=agent_preset,
        )
        return await self._make(header, LogOffset(0), None, first, composition)

    async def fork(
        self,
        source: SessionId,
        *,
        cut: LogOffset | None = None,
        id: SessionId | None = None,  # noqa: A002
        header: Callable[[Header], Header] | None = None,
        first: Sequence[NewEvent] = (),
        composition: Composition | None = None,
    ) -> Session:
        child = new_id() if id is None else checked_id(id)
        if cut is None and (live := self._live.get(source)) is not None:
            cut = live.end
        async with self._origin(checked_id(source), cut, self._storage(composition)) as origin:
            cut = checked_cut(origin, cut)
            now, log_id = self._host.now(), new_log_id()
            facts = forked_header(origin.header, child, log_id, now, seeded=cut > 0, change=header)
            return await self._make(facts, cut, origin, first, composition)

    async def fork_stored(
        self,
        source: SessionId,
        *,
        cut: LogOffset | None = None,
        id: SessionId | None = None,  # noqa: A002
    ) -> Header:
        child = new_id() if id is None else checked_id(id)
        storage = self._host.scope.require(session_persistence)
        if (live := self._live.get(source)) is not None:
            cut = live.end if cut is None else cut
            await live.flush()
        async with await storage.read(checked_id(source)) as log:
            cut = checked_cut(log, cut)
            if not cut:
                raise CutInvalid(source, cut, "a session without events is not stored")
            await refuse_inside_a_turn(log, cut)
            now, log_id = self._host.now(), new_log_id()
            facts = forked_header(log.header, child, log_id, now, seeded=True, change=None)
        with self._taking(child):
            writer = await storage.fork(source, cut, facts)
            try:
                await writer.flush()
            except BaseException:
                await writer.discard()
                raise
            await writer.close()
        return facts

    async def resume(
        self,
        id: SessionId,  # noqa: A002
        *,
        composition: Composition | None = None,
    ) -> Session:
        if (leaving := self._disposing.get(checked_id(id))) is not None:
            await asyncio.wait({leaving})
        if (live := self._live.get(id)) is not None:
            return live
        if (task := self._resuming.get(id)) is None:
            task = asyncio.create_task(self._resume(id, composition), name=f"resuming {id}")
            self._resuming[id] = task
        return await asyncio.shield(task)

    async def dispose(self, session: Session) -> None:
        if (task := self._disposing.get(session.id)) is None:
            live = self._live.get(session.id)
            if live is None or live is not session:
                return
            task = asyncio.create_task(self._dispose(live), name=f"disposing {live.id}")
            self._disposing[live.id] = task
        await asyncio.shield(task)

    async def close(self) -> None:
        """Dispose of every session; one that cannot be saved is told and let go."""
        for task in tuple(self._resuming.values()):
            await asyncio.wait({task})
        for live in tuple(self._live.values()):
            try:
                await self.dispose(live)
            except HealdError as error:
                self._logger.error("%s", error)  # noqa: TRY400 - it says all
                if self._live.pop(live.id, None) is not None:
                    live.close()
                    await live.release()

    async def _make(
        self,
        header: Header,
        cut: LogOffset,
        origin: Origin | None,
        first: Sequence[NewEvent],
        composition: Composition | None,
    ) -> LiveSession:
        with self._taking(checked_header(header).id):
            writer = await _writer(self._storage(composition), header, cut, origin)
            session = self._session(header, cut, writer, composition)
            try:
                if origin is not None:
                    await inherit(session, origin, self._types)
                for new in first:
                    session.write(new.type, new.data, new.surface, new.sources)
                if session.end:
                    await session.flush()
                self._publish(session)
            except BaseException:
                await session.discard()
                raise
        return session

    async def _resume(self, id: SessionId, composition: Composition | None) -> LiveSession:  # noqa: A002
        try:
            storage = self._storage(composition)
            if storage is None:
                raise SessionNotFound(id, tuple(self._live))
            writer = await storage.open(id)
            try:
                async with await storage.read(id) as log:
                    session = self._session(log.header, log.cut, writer, composition)
                    for new in await load(session, log, self._types):
                        session.write(new.type, new.data, new.surface, new.sources)
                self._publish(session)
            except BaseException:
                await writer.discard()
                raise
            return session
        finally:
            del self._resuming[id]

    async def _dispose(self, session: LiveSession) -> None:
        try:
            await _flush_all(session)
            session.close()
            await session.scope.notify(session_closed, session)
        except SessionNotSaved:
            raise  # it stays, so that nothing is lost while the disk may be mended
        except BaseException:
            session.close()
            self._live.pop(session.id, None)
            await session.release()
            raise
        else:
            await session.release()
            self._live.pop(session.id, None)
        finally:
            del self._disposing[session.id]

    def _session(
        self,
        header: Header,
        cut: LogOffset,
        writer: LogWriter | None,
        composition: Composition | None,
    ) -> LiveSession:
        scope = Scope(composition or self._host.composition)
        return LiveSession(
            header, cut, scope, types=self._types, writer=writer, limits=self._limits
        )

    def _publish(self, session: LiveSession) -> None:
        session.scope.notify(session_prepared, session)
        self._live[session.id] = session
        session.scope.notify(session_opened, session)

    def _storage(self, composition: Composition | None) -> SessionPersistence | None:
        return (composition or self._host.composition).scope.find(session_persistence)

    @contextmanager
    def _taking(self, id: SessionId) -> Iterator[None]:  # noqa: A002
        if id in self._live or id in self._making or id in self._resuming:
            raise SessionIdTaken(id)
        self._making.add(id)
        try:
            yield
        finally:
            self._making.discard(id)

    @asynccontextmanager
    async def _origin(
        self,
        source: SessionId,
        cut: LogOffset | None,
        storage: SessionPersistence | None,
    ) -> AsyncIterator[Origin]:
        """Open what a fork begins with: storage where that has it, else the live session."""
        if (live := self._live.get(source)) is not None:
            if cut is None or cut <= 0 or not live.is_kept_in(storage):
                yield LiveOrigin(live, live.end)
                return
            if live.flushed < cut:
                await live.flush()
        if storage is None:
            raise SessionNotFound(source, tuple(self._live))
        async with await storage.read(source) as log:
            yield log


async def _writer(
    storage: SessionPersistence | None, header: Header, cut: LogOffset, origin: Origin | None
) -> LogWriter | None:
    """Take a place for a new session where there is storage."""
    if storage is None:
        return None
    if origin is None or isinstance(origin, LiveOrigin) or not cut:
        return await storage.create(header, cut)
    return await storage.fork(origin.header.id, cut, header)


async def _flush_all(session: LiveSession) -> None:
    """Flush until nothing is left, though others append meanwhile."""
    while True:
        await session.flush()
        if session.flushed == session.end:
            return
