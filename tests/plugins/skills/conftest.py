"""A composition with the row `skills` above a host with agents, as a preset's is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from heald import Composition, Host, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_agent import Agent, agents
from heald_models_scripted import Call, Conversation, Reply, Script, scripts
from heald_session import session_store
from heald_skills import Skill, Skills, skills
from heald_skills.roots import entries

Install = Callable[..., None]
Until = Callable[[Callable[[], Any]], Awaitable[None]]


def call_what_is_asked_for(conversation: Conversation) -> Reply:
    """Call `skill` with the words of the prompt, then say what it returned."""
    if conversation.step:
        return Reply(text=conversation.results("skill")[0].text)
    name, _, arguments = conversation.prompt.partition(" ")
    return Reply(calls=(Call(tool="skill", arguments={"name": name, "arguments": arguments}),))


class AskingPlugin(Plugin[NoConfig]):
    """Brings the script `ask`."""

    @implements(scripts)
    def bring(self) -> Iterable[Script]:
        return (Script("ask", call_what_is_asked_for),)


@attrs.frozen
class Library:
    """A host and a composition on it that has skills."""

    host: Host
    above: Composition
    preset: Path
    """The directory of skills that the composition's preset carries."""
    project: Path
    """The directory of skills of the project."""
    user: Path
    cwd: Path

    @property
    def service(self) -> Skills:
        return self.above.scope.require(skills)

    async def all(self) -> dict[str, Skill]:
        return {skill.name: skill for skill in await self.service.catalogue(self.cwd)}

    async def agent(self, cwd: Path | None = None, **how: Any) -> Agent:
        session = await self.host.scope.require(session_store).create(
            cwd=str(cwd or self.cwd), composition=self.above
        )
        registry = self.host.scope.require(agents)
        return await registry.attach(session, model="scripted:ask", **how)

    def write(
        self, root: Path, name: str, description: str | None = None, body: str = "Do it."
    ) -> Path:
        """Write a skill and return its file."""
        file = root / name / "SKILL.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        front = f"name: {name}\ndescription: {description or f'To {name}.'}\n"
        file.write_text(f"---\n{front}---\n{body}\n")
        return file

    async def say(self, agent: Agent, text: str = "nothing") -> str:
        """Have a turn, and return what the agent answered."""
        await agent.send(text)
        return (await agent.settled()).text

    async def prompt(self, agent: Agent) -> str:
        """Have a turn, and return the system prompt that it began with."""
        await self.say(agent)
        context = agent.session.context()
        assert context is not None
        return context.system


OpenLibrary = Callable[..., AbstractAsyncContextManager[Library]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a session's directory."""
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
def open_library(
    heald_host: HostFactory, heald_home: Path, tmp_path: Path, project: Path, install: Install
) -> OpenLibrary:
    """Return a function that opens a host with a composition that has skills."""
    install(asking=AskingPlugin)

    @asynccontextmanager
    async def open_library(
        *rows: Row, config: Mapping[str, object] | None = None, above: Iterable[Row] = ()
    ) -> AsyncIterator[Library]:
        own = ("session", "projection", "commands", "agent", "models-scripted", "asking")
        async with heald_host(rows=[*(Row(name, name) for name in own), *rows]) as host:
            mounted = await host.mount(
                "preset mine", [Row("skills", "skills", config or {}), *above], [tmp_path / "mine"]
            )
            preset = tmp_path / "mine" / "skills"
            own_skills = project / ".heald" / "skills"
            yield Library(host, mounted, preset, own_skills, heald_home / "skills", project)

    return open_library


@pytest.fixture
async def library(open_library: OpenLibrary) -> AsyncIterator[Library]:
    """Return a host with a composition that has skills."""
    async with open_library() as library:
        yield library


@pytest.fixture
def until() -> Until:
    """Return a function that waits until something holds, and fails if it takes too long."""

    async def until(holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(20):
            while not holds():  # noqa: ASYNC110 - the file system sets no event
                await asyncio.sleep(0.01)

    return until


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the skills that were read for prompts, as they are read."""
    read: list[str] = []

    def noted(*arguments: Any) -> Iterator[Any]:
        for skill in entries(*arguments):
            read.append(skill.name)
            yield skill

    monkeypatch.setattr("heald_skills.looking.entries", noted)
    return read
