"""Hosts that list subagents, with services that can be watched or made to fail."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

from heald import CancelToken, Discovery, Host, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_agent import Agent, Agents, agents
from heald_models_scripted import Script, scripts
from heald_projection import Projections, Snapshot, Unit, projections, units
from heald_projection.plugin import ProjectionPlugin
from heald_projection_cache import ProjectionCache, projection_cache
from heald_projection_cache.plugin import ProjectionCachePlugin
from heald_query import Observation, SessionQuery, SessionRecord, session_query
from heald_query.plugin import QueryPlugin
from heald_session import (
    AppendGuard,
    Event,
    Header,
    LogOffset,
    NewEvent,
    Session,
    SessionId,
    SessionStore,
    append_guards,
    session_opened,
    session_store,
)
from heald_session.testing import append_unchecked
from heald_subagent import Subagents, subagents

DESCRIPTOR = "subagent/descriptor"
ALL = ("session", "persistence", "projection", "projection-cache", "query", "subagent")
MODULE = "plugins_of_the_subagent_tests"


@attrs.define
class Spies:
    """What was asked of the services, and what tests want to happen when they are asked."""

    observed: list[str] = attrs.field(factory=list)
    observed_keys: list[Any] = attrs.field(factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    listings: int = 0
    valued: list[list[str]] = attrs.field(factory=list)
    cached: list[str] = attrs.field(factory=list)
    cached_keys: list[Any] = attrs.field(factory=list)
    snapshots: list[str] = attrs.field(factory=list)
    snapshot_keys: list[Any] = attrs.field(factory=list)
    before_snapshot: Callable[[SessionId], None] = lambda _: None
    view: Callable[[SessionId], Snapshot | None] = lambda _: None
    tokens: list[CancelToken | None] = attrs.field(factory=list)
    before_listing: Callable[[], Awaitable[None]] | None = None
    after_listing: Callable[[], Awaitable[None]] | None = None
    records: Callable[[Sequence[SessionRecord]], Sequence[SessionRecord]] = lambda found: found
    before_observing: Callable[[SessionId], Awaitable[None]] | None = None
    while_observing: Callable[[SessionId], Awaitable[None]] | None = None
    header: Callable[[Header], Header] = lambda header: header
    cache: Callable[[Header], Snapshot | None] | None = None
    scripts: list[Script] = attrs.field(factory=list)
    guards: list[AppendGuard] = attrs.field(factory=list)
    opened: dict[str, tuple[list[str], int]] = attrs.field(factory=dict)
    published: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(0))


@attrs.frozen
class SpiedObservation:
    _seen: Observation
    header: Header

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seen, name)


@attrs.frozen
class SpiedQuery:
    _inner: SessionQuery
    _spies: Spies

    async def list_sessions(
        self, *, keys: Collection[str] = (), cancel: CancelToken | None = None
    ) -> Sequence[SessionRecord]:
        assert keys == ()
        self._spies.listings += 1
        self._spies.tokens.append(cancel)
        if self._spies.before_listing is not None:
            await self._spies.before_listing()
        found = self._spies.records(await self._inner.list_sessions(cancel=cancel))
        if self._spies.after_listing is not None:
            await self._spies.after_listing()
        return found

    async def known_values(
        self,
        headers: Iterable[Header],
        keys: Collection[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Mapping[SessionId, Snapshot]:
        headers = list(headers)
        self._spies.valued.append([header.id for header in headers])
        return await self._inner.known_values(headers, keys, cancel=cancel)

    @asynccontextmanager
    async def observe_session(
        self,
        ident: SessionId,
        keys: Collection[str] = (),
        *,
        at: LogOffset | None = None,
        cancel: CancelToken | None = None,
    ) -> AsyncIterator[Any]:
        spies = self._spies
        spies.observed.append(ident)
        spies.observed_keys.append(keys)
        spies.tokens.append(cancel)
        spies.in_flight += 1
        spies.most_in_flight = max(spies.most_in_flight, spies.in_flight)
        try:
            if spies.before_observing is not None:
                await spies.before_observing(ident)
            async with self._inner.observe_session(ident, keys, at=at, cancel=cancel) as seen:
                if spies.while_observing is not None:
                    await spies.while_observing(ident)
                yield SpiedObservation(seen, spies.header(seen.header))
        finally:
            spies.in_flight -= 1


@attrs.frozen
class SpiedCache:
    _inner: ProjectionCache
    _spies: Spies

    async def cached_snapshot(
        self,
        header: Header,
        cut: LogOffset,
        keys: Collection[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Snapshot | None:
        assert cut == 0
        self._spies.cached.append(header.id)
        self._spies.cached_keys.append(keys)
        self._spies.tokens.append(cancel)
        if self._spies.cache is not None:
            return self._spies.cache(header)
        return await self._inner.cached_snapshot(header, cut, keys, cancel=cancel)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@attrs.frozen
class SpiedProjections:
    _inner: Projections
    _spies: Spies

    def snapshot(self, session: Session, keys: Collection[str]) -> Snapshot:
        self._spies.snapshots.append(session.id)
        self._spies.snapshot_keys.append(keys)
        self._spies.before_snapshot(session.id)
        return self._spies.view(session.id) or self._inner.snapshot(session, keys)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def plugins(spies: Spies) -> dict[str, type[Plugin[Any]]]:
    class Query(QueryPlugin):
        @implements(session_query)
        def provide_query(self) -> Any:
            return SpiedQuery(super().provide_query(), spies)

    class Cache(ProjectionCachePlugin):
        @implements(projection_cache)
        def provide_cache(self) -> Any:
            return SpiedCache(super().provide_cache(), spies)

    class Cells(ProjectionPlugin):
        @implements(projections)
        def provide_projections(self) -> Any:
            return SpiedProjections(super().provide_projections(), spies)

    class Brittle(Plugin[NoConfig]):
        """Declares a fold that raises on the descriptor of every child labelled `brittle`."""

        @classmethod
        @implements(units)
        def declare(cls) -> Iterable[Unit]:
            def apply(state: int, event: Event) -> int:
                if event.type == DESCRIPTOR and event.data.get("label") == "brittle":
                    raise RuntimeError("brittle")
                return state + 1

            return [
                Unit(
                    key="brittle",
                    state_version=1,
                    event_types=None,
                    initial=lambda _header, _cut: 0,
                    apply=apply,
                    view=lambda state: state,
                )
            ]

    class Scripts(Plugin[NoConfig]):
        """Brings the scripts of a test, and hears of each session that is published."""

        @implements(scripts)
        def bring(self) -> Iterable[Script]:
            return spies.scripts

        @implements(append_guards)
        def guard(self) -> Iterable[AppendGuard]:
            return spies.guards

        @implements(session_opened)
        def hear(self, session: Session) -> None:
            types = [event.type for event in session.hot()]
            spies.opened[session.id] = (types, session.flushed)
            spies.published.release()

    return {
        "query": Query,
        "projection-cache": Cache,
        "projection": Cells,
        "brittle": Brittle,
        "scripts": Scripts,
    }


@pytest.fixture
def spies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spies:
    """Install a distribution of watched services, `spied-query` and so on."""
    spies = Spies()
    module: Any = ModuleType(MODULE)
    names = []
    for name, cls in plugins(spies).items():
        setattr(module, cls.__name__, cls)
        names.append(f"spied-{name} = {MODULE}:{cls.__name__}")
    info = tmp_path / "site" / "spied-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: spied\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[heald.plugins]\n" + "\n".join(names))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setitem(sys.modules, MODULE, module)
    return spies


@pytest.fixture
def watched() -> Callable[[], tuple[Spies, Discovery]]:
    """Return a factory of watched services for hosts that a test opens by itself."""

    def watched() -> tuple[Spies, Discovery]:
        spies = Spies()
        program = {f"spied-{name}": plugin for name, plugin in plugins(spies).items()}
        return spies, Discovery(program=program)

    return watched


SPIED = {"query", "projection", "projection-cache"}


@attrs.frozen
class World:
    """A host, and short ways to put sessions into it."""

    host: Host
    spies: Spies

    @property
    def store(self) -> SessionStore:
        return self.host.scope.require(session_store)

    @property
    def service(self) -> Subagents:
        return self.host.scope.require(subagents)

    async def children(self, parent: str = "parent", **kwargs: Any) -> list[Any]:
        return list(await self.service.list_children(SessionId(parent), **kwargs))

    async def descendants(self, root: str = "parent", **kwargs: Any) -> list[Any]:
        return list(await self.service.list_descendants(SessionId(root), **kwargs))

    async def session(
        self,
        ident: str,
        *descriptors: Any,
        parent: str | None = None,
        origin: str | None = None,
        live: bool = True,
        created_at: int | None = None,
        cwd: str | None = "/loom",
    ) -> Session:
        """Make a session; descriptors are written as they are, fit or not."""
        before = self.host.now
        if created_at is not None:
            self.host.now = lambda: created_at
        session = await self.store.create(
            cwd=cwd,
            id=SessionId(ident),
            parent_session=None if parent is None else SessionId(parent),
            delegation_depth=0 if origin is None else 1,
            origin=origin,
        )
        self.host.now = before
        for descriptor in descriptors:
            append_unchecked(session, DESCRIPTOR, descriptor)
        if not descriptors:
            session.append("turn/start", {"turn": 1})
        await session.flush()
        if not live:
            await self.store.dispose(session)
        return session

    async def child(
        self,
        ident: str,
        *descriptors: Any,
        parent: str = "parent",
        live: bool = True,
        **kwargs: Any,
    ) -> Session:
        """Make a subagent of a parent."""
        return await self.session(
            ident, *descriptors, parent=parent, origin="subagent", live=live, **kwargs
        )

    async def fork(
        self,
        source: str,
        ident: str,
        *descriptors: Any,
        parent: str = "parent",
        live: bool = True,
        cut: int | None = None,
    ) -> Session:
        """Make a subagent that inherits the log of another session."""

        def change(header: Header) -> Header:
            return Header(
                version=header.version,
                id=header.id,
                log_id=header.log_id,
                created_at=header.created_at,
                cwd=header.cwd,
                parent_session=SessionId(parent),
                is_seeded=header.is_seeded,
                delegation_depth=1,
                origin="subagent",
                agent_preset=header.agent_preset,
            )

        session = await self.store.fork(
            SessionId(source),
            id=SessionId(ident),
            cut=None if cut is None else LogOffset(cut),
            header=change,
            first=[NewEvent("turn/start", {"turn": 9}), NewEvent("turn/end", TURN_END)],
        )
        for descriptor in descriptors:
            append_unchecked(session, DESCRIPTOR, descriptor)
        await session.flush()
        if not live:
            await self.store.dispose(session)
        return session


TURN_END = {"turn": 9, "outcome": "completed"}

OpenWorld = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
def open_world(heald_host: HostFactory, spies: Spies) -> OpenWorld:
    """Return a factory of hosts over one home; `without` leaves rows out.

    `program` has plugin classes by name, for rows of the test's own.
    """

    @asynccontextmanager
    async def open_world(
        *,
        without: Collection[str] = (),
        rows: Sequence[Row] = (),
        program: Mapping[str, type[Plugin[Any]]] | None = None,
    ) -> AsyncIterator[World]:
        names = [name for name in ALL if name not in without]
        mounted = [Row(n, f"spied-{n}" if n in SPIED else n) for n in names]
        discovery = Discovery(program=program or {})
        async with heald_host(rows=[*mounted, *rows], discovery=discovery) as host:
            yield World(host, spies)

    return open_world


@pytest.fixture
async def world(open_world: OpenWorld) -> AsyncIterator[World]:
    """Return a host with everything the listing may use."""
    async with open_world() as world:
        yield world


@attrs.frozen
class Crew(World):
    """A world whose sessions can have agents on scripted models."""

    @property
    def agents(self) -> Agents:
        return self.host.scope.require(agents)

    async def agent(self, ident: str = "parent", model: str = "echo", **kwargs: Any) -> Agent:
        """Make a session, or take a stored one, and give it an agent."""
        known = [
            record.id for record in await self.host.scope.require(session_query).list_sessions()
        ]
        if ident in known:
            session = await self.store.resume(SessionId(ident))
        else:
            session = await self.store.create(cwd="/", id=SessionId(ident))
        return await self.agents.attach(session, model=f"scripted:{model}", **kwargs)


OpenCrew = Callable[..., AbstractAsyncContextManager[Crew]]


@pytest.fixture
def open_crew(heald_host: HostFactory, spies: Spies) -> OpenCrew:
    """Return a factory of hosts with agents over one home."""

    @asynccontextmanager
    async def open_crew(
        *scripts: Script,
        subagent: Mapping[str, object] | None = None,
        guards: Sequence[AppendGuard] = (),
        rows: Sequence[Row] = (),
    ) -> AsyncIterator[Crew]:
        spies.scripts, spies.guards = list(scripts), list(guards)
        mounted = [Row(n, f"spied-{n}" if n in SPIED else n) for n in ALL if n != "subagent"]
        mounted.append(Row("subagent", "subagent", subagent or {}))
        more = [
            Row("agent", "agent"),
            Row("models", "models-scripted"),
            Row("tools", "tools-agents"),
        ]
        brought = Row("scripts", "spied-scripts")
        async with heald_host(rows=[*mounted, *more, brought, *rows]) as host:
            yield Crew(host, spies)

    return open_crew
