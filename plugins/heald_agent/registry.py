"""The agents of this process: made, resumed, attached, and disposed of with the host."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from weakref import WeakKeyDictionary, WeakValueDictionary

import attrs

from heald import Scope
from heald_agent.agent import LiveAgent
from heald_agent.asking import Given
from heald_agent.errors import AgentExists, AskNotOpen, CwdInvalid
from heald_agent.events import AskDecided
from heald_agent.ledger import Ledger
from heald_agent.loop import Pace
from heald_agent.requests import adapter_of
from heald_agent.seating import seat_again, seat_for
from heald_preset import Seat, presets
from heald_session import Event, LogOffset, Session, SessionId, SessionStore, session_store

RESTARTED = "the program that asked has ended"


@attrs.define(eq=False)
class LiveAgents:
    """Keeps one agent for each session that has one; implements `Agents`."""

    scope: Scope
    pace: Pace
    model: str | None
    """The model of agents for which none is named."""
    _agents: dict[SessionId, LiveAgent] = attrs.field(factory=dict)
    _loaded: WeakKeyDictionary[Session, Ledger] = attrs.field(factory=WeakKeyDictionary)
    """Ledgers of sessions that were loaded and have no agent yet."""
    _resuming: WeakValueDictionary[SessionId, asyncio.Lock] = attrs.field(
        factory=WeakValueDictionary
    )

    def get(self, session: SessionId) -> LiveAgent | None:
        return self._agents.get(session)

    async def answer(
        self,
        session: SessionId,
        ask: str,
        outcome: Given,
        text: str | None = None,
        *,
        by: str,
    ) -> AskDecided:
        if (agent := self.get(session)) is None:
            raise AskNotOpen(session, ask)
        return await agent.asking.answer(ask, outcome, text, by)

    async def create(
        self,
        *,
        cwd: Path,
        preset: str | None = None,
        model: str | None = None,
        id: SessionId | None = None,  # noqa: A002
    ) -> LiveAgent:
        cwd = await _usable(cwd)
        seat = await seat_for(self.scope, preset, cwd)
        first = model if model is not None else self.model
        try:
            if first is not None:
                adapter_of(seat.composition.scope if seat else self.scope, first)
            session = await self._store.create(
                cwd=str(cwd),
                id=id,
                agent_preset=seat.preset if seat else None,
                composition=seat.composition if seat else None,
            )
        except BaseException:
            if seat is not None:
                await seat.release()
            raise
        return await self._first_agent(session, seat, model)

    async def resume(
        self,
        id: SessionId,  # noqa: A002
        *,
        preset: str | None = None,
        continue_as: str | None = None,
        model: str | None = None,
    ) -> LiveAgent:
        lock = self._resuming.setdefault(id, asyncio.Lock())
        async with lock:
            was_live = self._store.get(id) is not None
            session = await self._store.resume(id)
            try:
                if session.header.cwd is not None:
                    await _usable(Path(session.header.cwd))
                await seat_again(self.scope, session, preset, continue_as)
                if (agent := self.get(id)) is None:
                    agent = await self.attach(session, model=model)
                if model is not None:
                    agent.use_model(model)
            except BaseException:
                if not was_live:
                    await self._store.dispose(session)
                raise
            return agent

    async def attach(
        self,
        session: Session,
        *,
        model: str | None = None,
        denied_tools: frozenset[str] = frozenset(),
        persona: str | None = None,
    ) -> LiveAgent:
        if model is not None:
            adapter_of(session.scope, model)
        ledger = self._loaded.pop(session, None) or Ledger(session)
        await ledger.read()
        if session.id in self._agents:
            raise AgentExists(session.id)
        agent = LiveAgent(
            session,
            ledger,
            self.pace,
            model=model or ledger.chosen or self.model or ledger.model,
            denied_tools=denied_tools,
            persona=persona,
            leave=self._left,
        )
        self._agents[session.id] = agent
        if agent.model is not None:
            agent.deliver()
        return agent

    def load(self, session: Session, events: Sequence[Event]) -> None:
        """Fold what is loaded of a session's log, for the agent that may be attached to it."""
        if session not in self._loaded:
            self._loaded[session] = Ledger(session)
        self._loaded[session].feed(events)

    def opened(self, session: Session) -> None:
        """Expire what was asked by a program that has ended: nobody waits for the answer."""
        ledger = self._loaded.get(session)
        if ledger is not None and (ask := ledger.catch_up().open_ask) is not None:
            decided = AskDecided(ask, "expired", "restart", reason=RESTARTED)
            session.append("ask/decided", decided)

    def appended(self, session: Session) -> None:
        """Let the agent of a session follow its log, so that memory need not hold more of it."""
        if (agent := self._agents.get(session.id)) is not None:
            agent.ledger.catch_up()

    def needed(self, session: Session) -> LogOffset | None:
        """Return up to where the agent of a session has followed its log."""
        agent = self._agents.get(session.id)
        return None if agent is None else agent.ledger.offset

    def moved(self, session: Session, leaving: AsyncExitStack) -> None:
        """Let go of what the rows of a session's old preset keep for its agent."""
        agent = self._agents.get(session.id)
        if agent is not None and agent.session is session:
            agent.leave_preset(leaving)

    async def closing(self, session: Session) -> None:
        """End the agent of a session that somebody else disposes of."""
        if (agent := self._agents.get(session.id)) is not None and agent.session is session:
            del self._agents[session.id]
            await agent.dispose()

    async def close(self) -> None:
        """Dispose of every agent; one that cannot be does not keep the others."""
        ends = [agent.dispose() for agent in self._agents.values()]
        ended = await asyncio.gather(*ends, return_exceptions=True)
        if failures := [error for error in ended if isinstance(error, Exception)]:
            raise ExceptionGroup("agents did not end cleanly", failures)

    @property
    def _store(self) -> SessionStore:
        return self.scope.require(session_store)

    async def _first_agent(
        self, session: Session, seat: Seat | None, model: str | None
    ) -> LiveAgent:
        """Give a new session its agent, or undo the session and its seat."""
        try:
            if seat is not None:
                self.scope.require(presets).occupy(session, seat)
            agent = await self.attach(session, model=model)
            if model is not None:
                agent.use_model(model)
        except BaseException:
            await self._store.dispose(session)
            if seat is not None:
                await seat.release()
            raise
        return agent

    async def _left(self, agent: LiveAgent) -> None:
        """Forget an agent and dispose of its session, unless that is why the agent ends."""
        if self._agents.get(agent.session.id) is agent:
            del self._agents[agent.session.id]
            await self._store.dispose(agent.session)


async def _usable(cwd: Path) -> Path:
    """Return a directory's absolute path; raise `CwdInvalid` if nobody could work there."""
    absolute = await asyncio.to_thread(cwd.absolute)
    if (reason := await asyncio.to_thread(_why_unusable, absolute)) is not None:
        raise CwdInvalid(str(absolute), reason)
    return absolute


def _why_unusable(cwd: Path) -> str | None:
    try:
        if not cwd.exists():
            return "it does not exist"
        if not cwd.is_dir():
            return "it is not a directory"
        str(cwd).encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8, so no log can hold it"
    except OSError as error:
        return error.strerror or str(error)
    return None if os.access(cwd, os.R_OK | os.X_OK) else "it cannot be read"
