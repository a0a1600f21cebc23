"""A host with an archive of sessions, and an agent in one directory that looks into it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from heald import Discovery, Host, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_agent import Agent, agents
from heald_models_scripted import Call, Conversation, Reply, Script, scripts
from heald_session import APPEND, Session, SessionId, ToolResult, session_store

ROWS = ("session", "persistence", "projection", "query", "subagent", "agent", "models-scripted")
NOW = 1_700_000_000_000


@attrs.frozen
class Archive:
    """A host, and the session of an agent that calls what a test wants."""

    host: Host
    agent: Agent
    wanted: list[Call]

    async def keep(
        self,
        id: str,  # noqa: A002
        cwd: str | None,
        *texts: str,
        **facts: Any,
    ) -> Session:
        """Make a session in which a person said these texts, and leave it stored."""
        store = self.host.scope.require(session_store)
        session = await store.create(cwd=cwd, id=SessionId(id), **facts)
        session.append("turn/start", {"turn": 1})
        for number, text in enumerate(texts):
            session.append("user/message", {"id": f"m{number}", "text": text}, surface=APPEND)
        session.append("turn/end", {"turn": 1, "outcome": "completed"})
        await store.dispose(session)
        return session

    async def call(self, tool: str, **arguments: object) -> ToolResult:
        """Let the agent call a tool in a turn of its own."""
        self.wanted.append(Call(tool=tool, arguments=arguments))
        await self.agent.send("go")
        outcome = await self.agent.settled()
        assert outcome.outcome == "completed", outcome
        events = [e for e in self.agent.session.hot() if e.type == "tool/result"]
        return events[-1].data_as(ToolResult)

    async def told(self, tool: str, **arguments: object) -> list[str]:
        """Return the lines of what a call gave."""
        result = await self.call(tool, **arguments)
        assert not result.is_error, result.text
        return result.text.splitlines()


OpenArchive = Callable[..., AbstractAsyncContextManager[Archive]]


@pytest.fixture
def open_archive(heald_host: HostFactory) -> OpenArchive:
    """Return a factory of archives with an agent in a directory."""
    wanted: list[Call] = []

    def play(conversation: Conversation) -> Reply:
        calls = tuple(wanted) if conversation.step == 0 else ()
        wanted.clear()
        return Reply(text="" if calls else "done", calls=calls)

    class ReaderPlugin(Plugin[NoConfig]):
        @implements(scripts)
        def bring(self) -> Iterable[Script]:
            return [Script("reader", play)]

    @asynccontextmanager
    async def opened(
        cwd: str | None = "/loom", *, home: Path | None = None, more: Sequence[str] = ()
    ) -> AsyncIterator[Archive]:
        rows = [Row(name, name) for name in (*ROWS, *more, "tools-sessions", "reader")]
        discovery = Discovery(program={"reader": ReaderPlugin})
        async with heald_host(rows=rows, discovery=discovery, home=home) as host:
            host.now = lambda: NOW
            session = await host.scope.require(session_store).create(cwd=cwd, id=SessionId("own"))
            agent = await host.scope.require(agents).attach(session, model="scripted:reader")
            yield Archive(host, agent, wanted)

    return opened
