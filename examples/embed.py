"""Heald inside a program: a tool of the program's own, a session, and what was logged.

Run it with `python examples/embed.py`. It plays a script instead of asking a model; give another
model's name, such as `openai:gpt-5`, to ask that.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from heald import Discovery, Layer, NoConfig, Plugin, implements, open_host
from heald_agent import AnyTool, Tool, ToolContext, agents, tools
from heald_models_scripted import Call, Conversation, Reply, Script, scripts

STOCK = {"warp": 12, "weft": 0}


class LookUp(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of the tool `stock`."""

    thread: str


async def look_up(arguments: LookUp, _: ToolContext) -> str:
    """Tell how much of a thread there is."""
    return str(STOCK.get(arguments.thread, 0))


def answer(conversation: Conversation) -> Reply:
    """Ask the tool first, then say what it returned."""
    if results := conversation.results("stock"):
        return Reply(text=f"There are {results[0].text} spools of it.")
    return Reply(calls=(Call(tool="stock", arguments={"thread": conversation.prompt}),))


class ShopPlugin(Plugin[NoConfig]):
    """What the program brings: no distribution, no entry point."""

    @implements(tools)
    def its_tools(self) -> Iterable[AnyTool]:
        """Contribute the tool `stock`."""
        about = "Look up how many spools of a thread there are."
        return [Tool(name="stock", description=about, arguments=LookUp, run=look_up)]

    @implements(scripts)
    def its_scripts(self) -> Iterable[Script]:
        """Contribute `scripted:shop`."""
        return [Script("shop", answer)]


async def main(model: str) -> None:
    """Run one turn and print what it left in the log."""
    row = Layer("shop", rows=({"id": "shop", "plugin": "shop"},))
    discovery = Discovery(program={"shop": ShopPlugin})
    async with open_host(discovery=discovery, patches=[row]) as host:
        agent = await host.scope.require(agents).create(
            cwd=Path.cwd(), preset="minimal", model=model
        )
        await agent.send("warp")
        outcome = await agent.settled()
        print(outcome.text)
        for event in agent.session.hot():
            print(event.seq, event.type)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "scripted:shop"))
