"""A host whose preset `compact` has the command, and a model that sums up when it is asked to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest

from heald import Discovery, Host, Next, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_agent import (
    Agent,
    AnyTool,
    ModelReply,
    ModelRequest,
    Tool,
    ToolContext,
    agents,
    model_call,
    text_streamed,
    tools,
)
from heald_commands import command_directory
from heald_models_scripted import Call, Conversation, Reply, Script, scripts
from heald_session import Session

HOST = (
    "session",
    "persistence",
    "projection",
    "projection-cache",
    "query",
    "preset",
    "agent",
    "commands",
    "models-scripted",
    "brings",
)


class Line(msgspec.Struct):
    line: str


@attrs.define(eq=False)
class Desk:
    """A host, and what its model is to answer when it is asked for a summary."""

    cwd: Path
    host: Host = attrs.field(init=False)
    summary: Reply = attrs.field(factory=lambda: Reply(text="They counted."))
    sent: list[ModelRequest] = attrs.field(factory=list)
    heard: list[str] = attrs.field(factory=list)
    waiting: asyncio.Event = attrs.field(factory=asyncio.Event)
    """Set when a summary is asked for."""
    gate: asyncio.Event = attrs.field(factory=asyncio.Event)
    """Set while summaries are given at once."""

    def __attrs_post_init__(self) -> None:
        self.gate.set()

    async def agent(self, preset: str = "compact", **named: Any) -> Agent:
        create = self.host.scope.require(agents).create
        return await create(cwd=self.cwd, preset=preset, model="scripted:counts", **named)

    async def say(self, agent: Agent, *prompts: str) -> None:
        for prompt in prompts:
            await agent.send(prompt)
            assert (await agent.settled()).outcome == "completed"

    async def compact(self, agent: Agent, wanted: str = "") -> str:
        return await self.command(agent, f"/compact {wanted}")

    async def command(self, agent: Agent, line: str) -> str:
        return await agent.session.scope.require(command_directory).run(agent.session, line)

    async def play(self, conversation: Conversation) -> Reply:
        """Answer every prompt; after the word `call`, with a command that a tool runs."""
        if "replaced by a summary" in conversation.prompt:
            self.waiting.set()
            await self.gate.wait()
            return self.summary
        if conversation.step == 0 and conversation.prompt.startswith("call "):
            line = conversation.prompt.removeprefix("call ")
            return Reply(calls=(Call(tool="command", arguments={"line": line}),))
        return Reply(text=f"answer to {conversation.prompt}")

    async def call(self, arguments: Line, context: ToolContext) -> str:
        return await self.command(context.agent, arguments.line)

    def plugin(self) -> type[Plugin[NoConfig]]:
        """Make the plugin that brings the model's script and listens."""
        at = self

        class Brings(Plugin[NoConfig]):
            @implements(scripts)
            def give(self) -> Iterable[Script]:
                return [Script("counts", at.play)]

            @implements(tools)
            def tool(self) -> Iterable[AnyTool]:
                return [Tool(name="command", description="Run.", arguments=Line, run=at.call)]

            @implements(model_call)
            async def keep(
                self, request: ModelRequest, call_next: Next[ModelRequest, ModelReply]
            ) -> ModelReply:
                at.sent.append(request)
                return await call_next(request)

            @implements(text_streamed)
            def hear(self, session: Session, text: str) -> None:
                at.heard.append(text)

        return Brings


OpenDesk = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def desk(heald_host: HostFactory, heald_home: Path, tmp_path: Path) -> OpenDesk:
    """Return a factory of desks; `keep` is how many characters stay as they are."""
    presets = heald_home / "presets"
    for name in ("compact", "plain"):
        (presets / name).mkdir(parents=True)
    (presets / "plain" / "preset.toml").write_text('[[rows]]\nid = "plan"\nplugin = "plan"\n')
    cwd = tmp_path / "work"
    cwd.mkdir()

    @asynccontextmanager
    async def factory(
        keep: int = 0, rows: Iterable[str] = (), home: Path | None = None, **config: str
    ) -> AsyncIterator[Desk]:
        lines = ['[[rows]]\nid = "compaction"\nplugin = "compaction"\n[rows.config]']
        lines += [f"keep_chars = {keep}", *(f'{name} = "{v}"' for name, v in config.items())]
        lines += [f'[[rows]]\nid = "{row}"\nplugin = "{row}"' for row in rows]
        (presets / "compact" / "preset.toml").write_text("\n".join(lines) + "\n")
        at = Desk(cwd)
        hosted = [Row(name, name) for name in HOST]
        discovery = Discovery(program={"brings": at.plugin()})
        async with heald_host(rows=hosted, discovery=discovery, home=home) as at.host:
            yield at

    return factory
