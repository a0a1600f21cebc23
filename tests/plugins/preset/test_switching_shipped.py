"""Agents on the shipped presets: what each has, after any number of switches too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path

import pytest

from heald import Discovery, Host, NoConfig, Plugin, implements
from heald.testing import HostFactory
from heald_agent import Agent, agents, tools
from heald_commands import command_directory
from heald_models_scripted import Call, Conversation, Reply, Script, scripts
from heald_plan import PlanEntered
from heald_preset import presets
from heald_session import AssistantMessage, ToolResult
from heald_skills import skills

Make = Callable[[str], Awaitable[Agent]]
OF_HOST = ["model", "preset", "rename"]
OF_STANDARD = ["compact", "model", "plan", "preset", "rename"]


def play(conversation: Conversation) -> Reply:
    """Run the prompt as a command, then say what came of it."""
    if conversation.step:
        return Reply(text=conversation.results("shell")[-1].text)
    return Reply(calls=(Call(tool="shell", arguments={"command": conversation.prompt}),))


class ScriptsPlugin(Plugin[NoConfig]):
    @implements(scripts)
    def give(self) -> Iterable[Script]:
        return (Script("shell", play),)


@pytest.fixture
async def host(heald_host: HostFactory, heald_home: Path) -> AsyncIterator[Host]:
    """Return a host of the default profile with a model that runs what it is told."""
    (heald_home / "heald.toml").write_text('[[rows]]\nid = "scripts"\nplugin = "scripts"\n')
    async with heald_host(discovery=Discovery(program={"scripts": ScriptsPlugin})) as host:
        yield host


@pytest.fixture
def skill(project: Path) -> str:
    """Write a skill of the project, and return its name."""
    file = project / ".heald" / "skills" / "review" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: review\ndescription: Review a change.\n---\nLook at it.\n")
    return "review"


@pytest.fixture
def make(host: Host, project: Path) -> Make:
    """Return a function that makes an agent on a preset."""

    async def make(preset: str) -> Agent:
        create = host.scope.require(agents).create
        return await create(cwd=project, preset=preset, model="scripted:shell")

    return make


async def catalogue(host: Host, agent: Agent) -> list[str]:
    """Return the names of a session's slash commands."""
    found = await host.scope.require(command_directory).catalogue(agent.session)
    return [command.value.name for command in found]


async def skills_of(agent: Agent, cwd: Path) -> list[str]:
    """Return the names of a session's skills."""
    service = agent.session.scope.find(skills)
    return [] if service is None else [skill.name for skill in await service.catalogue(cwd)]


async def test_a_switch_takes_commands_and_skills_from_that_session_and_from_no_other(
    host: Host, make: Make, project: Path, skill: str
) -> None:
    switching, other = await make("standard"), await make("standard")
    service = host.scope.require(presets)
    with_skill = sorted([*OF_STANDARD, skill])

    for preset, commands, found in (
        ("standard", with_skill, [skill]),
        ("minimal", OF_HOST, []),
        ("standard", with_skill, [skill]),
    ):
        await service.switch(switching.session, preset)
        assert await catalogue(host, switching) == commands
        assert await skills_of(switching, project) == found
        assert await catalogue(host, other) == with_skill
        assert await skills_of(other, project) == [skill]


async def test_the_tools_after_switches_are_those_of_a_fresh_mount(host: Host, make: Make) -> None:
    agent = await make("minimal")
    for preset in ("standard", "minimal", "standard"):
        await host.scope.require(presets).switch(agent.session, preset)
        fresh = await make(preset)
        names = [
            [tool.value.name for tool in each.session.scope.collect(tools)]
            for each in (agent, fresh)
        ]
        assert names[0] == names[1]
        await fresh.dispose()


async def test_plan_mode_of_a_blank_session_means_nothing_on_a_preset_without_it(
    host: Host, make: Make, project: Path
) -> None:
    agent = await make("standard")
    agent.session.append("plan/entered", PlanEntered())
    await host.scope.require(presets).switch(agent.session, "minimal")

    await agent.send("touch made")
    await agent.settled()

    assert (project / "made").exists()
    context = agent.session.context()
    assert context is not None
    assert "plan" not in context.system.lower()
    assert [tool.name for tool in context.tools] == ["shell", "editor"]


async def test_the_persona_of_minimal_is_the_whole_system_prompt(
    make: Make, skill: str, project: Path
) -> None:
    (project / "AGENTS.md").write_text("Be kind.")
    agent = await make("minimal")
    await agent.send("true")
    await agent.settled()

    context = agent.session.context()
    assert context is not None
    (row,) = [r for r in agent.session.scope.composition.plan.rows if r.row.id == "persona"]
    assert context.system == row.config.text.strip()
    assert skill not in context.system


async def test_two_agents_on_minimal_have_two_shells(make: Make) -> None:
    one, two = await make("minimal"), await make("minimal")
    for agent in (one, two):
        await agent.send("echo before ${WHO:-nobody}; WHO=me")
        await agent.settled()
        await agent.send("echo after ${WHO:-nobody}; echo $$")
        await agent.settled()

    said = [[m.text for m in a.session.history() if isinstance(m, ToolResult)] for a in (one, two)]
    assert [first.splitlines()[0] for first, _ in said] == ["before nobody"] * 2
    assert [second.splitlines()[0] for _, second in said] == ["after me"] * 2
    assert len({second.splitlines()[1] for _, second in said}) == 2
    assert all(isinstance(a.session.history()[-1], AssistantMessage) for a in (one, two))
