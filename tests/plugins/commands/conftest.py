"""A host with slash commands that a distribution on disk brings."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from heald import Discovery, Host, Row
from heald.testing import HostFactory

COMMANDS = """
import asyncio

from heald import HealdError, Plugin, implements
from heald_commands import Command, commands

class Refused(HealdError):
    code = "TEST_REFUSED"

async def echo(call):
    return f"[{call.arguments}] in {call.session.id}"

async def refuse(call):
    raise Refused("not today; come back tomorrow")

async def fail(call):
    raise ValueError("that is broken")

async def leave(call):
    raise SystemExit(3)

async def number(call):
    return 7

async def wait(call):
    await asyncio.Event().wait()

class LettersPlugin(Plugin):
    @implements(commands)
    def commands(self):
        bodies = (wait, echo, refuse, fail, leave, number)
        return [Command(body.__name__, f"To {body.__name__}", body) for body in bodies]

class OthersPlugin(Plugin):
    @implements(commands)
    def commands(self):
        async def echo(call):
            return "another echo"
        return (Command("echo", "Nearer", echo), Command("apart", "Only here", echo))
"""


@pytest.fixture
async def host(
    heald_host: HostFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Host]:
    """Return a host whose row `letters` has commands; the plugin `others` can be mounted above."""
    info = tmp_path / "site" / "letters-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: letters\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[heald.plugins]\nletters = letter_commands:LettersPlugin\n"
        "others = letter_commands:OthersPlugin\n"
    )
    (tmp_path / "site" / "letter_commands.py").write_text(COMMANDS)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "letter_commands", raising=False)
    rows = [Row(name, name) for name in ("session", "commands", "letters")]
    discovery = Discovery(path=[str(tmp_path / "site"), *sys.path])
    async with heald_host(rows=rows, discovery=discovery) as host:
        yield host
