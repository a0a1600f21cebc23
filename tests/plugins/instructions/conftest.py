"""Agents that are given what people wrote into AGENTS.md and CLAUDE.md."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import attrs
import pytest

from heald import Host, Row
from heald.testing import HostFactory
from heald_agent import Agent, agents
from heald_instructions import InstructionsRead


@attrs.frozen
class Desk:
    """A host whose agents are given instructions, and a repository to work in."""

    host: Host
    repository: Path

    async def agent(self, cwd: Path | None = None) -> Agent:
        registry = self.host.scope.require(agents)
        return await registry.create(cwd=cwd or self.repository, model="scripted:echo")

    async def prompt(self, agent: Agent) -> str:
        """Have a turn, and return the system prompt that it began with."""
        await agent.send("hello")
        assert (await agent.settled()).outcome == "completed"
        context = agent.session.context()
        assert context is not None
        return context.system

    async def said(self, cwd: Path | None = None) -> list[str]:
        """Return the texts that a new agent is given, each with its path before it."""
        prompt = await self.prompt(await self.agent(cwd))
        return prompt.split("\n\n# ")[1:]


def read(agent: Agent) -> list[InstructionsRead]:
    """Return what the log says was read."""
    events = (e for e in agent.session.hot() if e.type == "instructions/read")
    return [event.data_as(InstructionsRead) for event in events]


OpenDesk = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository outside the person's home."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    return tmp_path / "repository"


@pytest.fixture
def open_desk(heald_host: HostFactory, repository: Path) -> OpenDesk:
    """Return a function that opens a host whose agents are given instructions."""

    @asynccontextmanager
    async def open_desk(config: Mapping[str, object] | None = None) -> AsyncIterator[Desk]:
        names = ("session", "persistence", "projection", "agent", "models-scripted")
        instructions = Row("instructions", "instructions", config or {})
        async with heald_host(rows=[*(Row(n, n) for n in names), instructions]) as host:
            yield Desk(host, repository)

    return open_desk


@pytest.fixture
async def desk(open_desk: OpenDesk) -> AsyncIterator[Desk]:
    """Return a host whose agents are given instructions."""
    async with open_desk() as desk:
        yield desk


@pytest.fixture
def logged() -> Callable[[Agent], list[InstructionsRead]]:
    """Return the function that says what a session read, by its log."""
    return read
