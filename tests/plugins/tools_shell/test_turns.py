"""The shell as a model has it: called by a turn, and killed when the turn is cancelled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from heald import Discovery, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_agent import Agent, agents
from heald_models_scripted import Call, Conversation, Reply, Script, scripts
from heald_session import ToolResult
from heald_tools_shell.processes import session_members


def play(conversation: Conversation) -> Reply:
    """Run the prompt as a command, then answer with what it wrote."""
    if conversation.step == 0:
        return Reply(calls=(Call(tool="shell", arguments={"command": conversation.prompt}),))
    return Reply(text=conversation.results("shell")[-1].text)


class Scripts(Plugin[NoConfig]):
    @implements(scripts)
    def give(self) -> Iterable[Script]:
        return [Script("shell", play)]


@pytest.fixture
async def agent(heald_host: HostFactory, tmp_path: Path) -> AsyncIterator[Agent]:
    plugins = ["session", "agent", "models-scripted", "tools-shell", "scripts"]
    rows = [Row(plugin, plugin) for plugin in plugins]
    async with heald_host(rows=rows, discovery=Discovery(program={"scripts": Scripts})) as host:
        yield await host.scope.require(agents).create(cwd=tmp_path, model="scripted:shell")


async def test_the_shell_stays_from_turn_to_turn(agent: Agent) -> None:
    await agent.send("WHO=me")
    await agent.settled()
    await agent.send("echo $WHO")
    assert (await agent.settled()).text == "me\n[exit status 0]"


async def test_cancelling_a_turn_kills_what_its_command_started(
    agent: Agent, tmp_path: Path
) -> None:
    await agent.send(f"echo $$ so far | tee {tmp_path}/started; sleep 600")
    text = await asyncio.to_thread(first_line, tmp_path / "started")
    agent.cancel("user")
    assert (await agent.settled()).outcome == "aborted"
    (result,) = (m for m in agent.session.history() if isinstance(m, ToolResult))
    assert result.is_error
    assert result.text.startswith(f"{text}[cancelled (user): the shell")
    assert session_members(int(text.split()[0])) == []


def first_line(path: Path) -> str:
    """Wait until a command has written it."""
    while not (path.exists() and path.read_text().endswith("\n")):
        time.sleep(0.01)
    return path.read_text()
