"""Agents of sessions whose logs are longer than what is in memory of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from heald import Host
from heald_agent import Agent, agents
from heald_session import InboxMessage, Session, SessionId, TurnContext, session_store

HostWith = Callable[..., AbstractAsyncContextManager[Host]]
A, B = SessionId("a"), SessionId("b")
SMALL = {"hot_events": 30}


async def fill(session: Session, count: int) -> None:
    for n in range(count):
        session.append("turn/context", TurnContext(f"{n}", []))
        if n % 10 == 0:
            await session.flush()
    await session.flush()


async def told(agent: Agent) -> list[str]:
    return [e.data["text"] async for e in agent.session.read() if e.type == "user/message"]


@pytest.mark.parametrize("how", ["resumed", "forked", "live"])
async def test_what_was_accepted_long_ago_is_delivered_once(
    host_with: HostWith, tmp_path: Path, how: str
) -> None:
    async with host_with(storage=True, window=SMALL) as host:
        store, registry = host.scope.require(session_store), host.scope.require(agents)
        session = await store.create(cwd=str(tmp_path), id=A)
        session.append("inbox/message", InboxMessage("m1", "waiting"))
        await fill(session, 300)
        if how == "resumed":
            await store.dispose(session)
        session = await (store.fork(A, id=B) if how == "forked" else store.resume(A))
        assert session.hot_from > 0
        agent = await registry.attach(session, model="scripted:echo")
        await agent.settled()
        # A message that a fork inherited undelivered is its source's to deliver.
        assert await told(agent) == ([] if how == "forked" else ["waiting"])
        await agent.send("again")
        assert (await agent.settled()).text == "again"


async def test_an_idle_agent_follows_its_log_and_holds_nothing_back(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(storage=True, window=SMALL) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:echo")
        await fill(agent.session, 300)
        assert len(agent.session.hot()) <= 30
        await agent.send("hello")
        assert (await agent.settled()).text == "hello"
        assert await told(agent) == ["hello"]
