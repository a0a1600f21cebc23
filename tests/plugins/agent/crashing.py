"""A program that runs a turn up to a phase, says so, and stands still until it is killed.

Usage: crashing.py HOME CWD PHASE. It is a folder on `sys.path` that makes its plugin known.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from heald import NoConfig, Plugin, Row, implements, open_host
from heald_agent import (
    Answerer,
    AnyTool,
    AskOpened,
    Question,
    Tool,
    ToolContext,
    agents,
    answerers,
    ask_opened,
    tools,
)
from heald_models_scripted import Call, Conversation, Reply, Script, scripts
from heald_session import Event, Session, SessionId, event_appended


class Name(msgspec.Struct):
    name: str


def phase() -> str:
    return sys.argv[3]


def stand_still() -> None:
    """Say that the phase is reached, and let nothing else happen in this process."""
    sys.stdout.write("reached\n")
    sys.stdout.flush()
    time.sleep(3600)


async def use(arguments: Name, context: ToolContext) -> str:
    if arguments.name == "asking":
        await context.agent.ask(Question(text="Shall I?"))
    if arguments.name == phase():
        stand_still()
    return f"used {arguments.name}"


def play(conversation: Conversation) -> Reply:
    at = {"streaming": 0, "answered": 1}.get(phase())
    if conversation.step == at:
        stand_still()
    if conversation.step > 0:
        return Reply(text="done")
    names = {
        "beside": ("quick", "beside", "after"),
        "running": ("running", "after"),
        "asking": ("asking", "after"),
    }
    calls = [call_for(name) for name in names.get(phase(), ("quick", "after"))]
    return Reply(text="Let me.", calls=tuple(calls))


def call_for(name: str) -> Call:
    tool = "beside" if name == "beside" else "alone"
    return Call(tool=tool, arguments={"name": name})


class Crashing(Plugin[NoConfig]):
    @implements(tools)
    def bring_tools(self) -> Iterable[AnyTool]:
        return (
            Tool(name="beside", description="Use.", arguments=Name, run=use, parallel=True),
            Tool(name="alone", description="Use.", arguments=Name, run=use),
        )

    @implements(scripts)
    def bring_scripts(self) -> Iterable[Script]:
        return (Script("crash", play),)

    @implements(answerers)
    def attend(self) -> Iterable[Answerer]:
        return (lambda _session: True,)

    @implements(ask_opened)
    def hear(self, session: Session, ask: AskOpened) -> None:
        stand_still()

    @implements(event_appended)
    def watch(self, session: Session, event: Event) -> None:
        if (phase(), event.type) in {("accepted", "turn/start"), ("unflushed", "tool/result")}:
            stand_still()


async def main(home: Path, cwd: Path) -> None:
    names = ("session", "persistence", "agent", "models-scripted", "crashing")
    async with open_host(home=home, rows=[Row(n, n) for n in names], strict=True) as host:
        registry = host.scope.require(agents)
        agent = await registry.create(cwd=cwd, model="scripted:crash", id=SessionId("crashed"))
        await agent.send("the task")
        await agent.settled()


if __name__ == "__main__":
    sys.modules["crashing"] = sys.modules["__main__"]
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
