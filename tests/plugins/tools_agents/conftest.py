"""A host whose agents delegate, on scripted models."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

from heald import Host, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_agent import Agent, TurnOutcome, agents
from heald_models_scripted import Call, Conversation, Reply, Script, scripts
from heald_session import SessionId, ToolResult, session_store
from heald_subagent import Subagents, subagents

ROWS = ("session", "persistence", "projection", "query", "subagent", "agent", "models-scripted")
MODULE = "plugins_of_the_delegation_tests"
Steps = Sequence[Callable[[Conversation], Sequence[Call]]]


@attrs.frozen
class Office:
    """A host with a boss, who makes the calls a test wants step by step."""

    host: Host
    boss: Agent

    @property
    def service(self) -> Subagents:
        return self.host.scope.require(subagents)

    async def go(self) -> TurnOutcome:
        await self.boss.send("go")
        return await self.boss.settled()

    def results(self, tool: str) -> list[ToolResult]:
        """Return what the boss's calls of a tool gave."""
        events = [e for e in self.boss.session.hot() if e.type == "tool/result"]
        results = [event.data_as(ToolResult) for event in events]
        return [result for result in results if result.name == tool]


OpenOffice = Callable[..., AbstractAsyncContextManager[Office]]


def boss(steps: Steps) -> Script:
    """Make the calls of each step in answer to `go`; echo everything else."""

    def play(conversation: Conversation) -> Reply:
        if conversation.prompt != "go" or conversation.step >= len(steps):
            return Reply(text=f"I did: {conversation.prompt}")
        return Reply(calls=tuple(steps[conversation.step](conversation)))

    return Script("boss", play)


@pytest.fixture
def open_office(
    heald_host: HostFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> OpenOffice:
    """Return a factory of hosts with a boss that makes the calls of each step."""
    brought: list[Script] = []

    class Scripts(Plugin[NoConfig]):
        @implements(scripts)
        def bring(self) -> Iterable[Script]:
            return brought

    info = tmp_path / "site" / "office-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: office\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[heald.plugins]\noffice = {MODULE}:Scripts\n")
    module: Any = ModuleType(MODULE)
    module.Scripts = Scripts
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setitem(sys.modules, MODULE, module)

    @asynccontextmanager
    async def open_office(*steps: Any, others: Sequence[Script] = ()) -> AsyncIterator[Office]:
        brought[:] = [boss(steps), *others]
        rows = [*ROWS, "tools-agents", "office"]
        async with heald_host(rows=[Row(name, name) for name in rows]) as host:
            store = host.scope.require(session_store)
            session = await store.create(cwd="/", id=SessionId("boss"))
            agent = await host.scope.require(agents).attach(session, model="scripted:boss")
            yield Office(host, agent)

    return open_office
