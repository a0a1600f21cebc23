"""A real agent in a directory of its own, and its tools called as the turn loop calls them."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from heald import CancelToken, Row
from heald.testing import HostFactory
from heald_agent import ToolContext, agents, tools

Call = Callable[..., Coroutine[Any, Any, str]]
Tools = Callable[..., AbstractAsyncContextManager[Call]]

NAMES = ["a.py", "b.txt", "c.py", ".env", "build", "x", "src", "keep.log", "out.log", "ü"]
RULES = ["*.log", "!keep.log", "build/", "/x", "src/*.py", "**/a.py", "# nothing", "x/**/c.py"]
WORDS = ["alpha", "beta", "Alpha", "gamma12", "", "  x", "ünï", "b.t"]


def _grow(root: Path, seed: int, *, rules: bool = True) -> None:
    """Make the tree that a number stands for, in place of what is there."""
    if root.exists():
        shutil.rmtree(root)
    root.mkdir()
    _fill(root, random.Random(seed), 3, rules=rules)


def _fill(directory: Path, chance: random.Random, depth: int, *, rules: bool) -> None:
    for name in chance.sample(NAMES, chance.randint(0, 6)):
        if depth and chance.random() < 0.4:
            (directory / name).mkdir()
            _fill(directory / name, chance, depth - 1, rules=rules)
        else:
            (directory / name).write_bytes(_content(chance))
    if rules and chance.random() < 0.4:
        chosen = chance.sample(RULES, chance.randint(1, 4))
        (directory / ".gitignore").write_text("\n".join(chosen) + "\n")


def _content(chance: random.Random) -> bytes:
    if chance.random() < 0.1:
        return b"alpha\0beta\n"
    lines = [chance.choice(WORDS) for _ in range(chance.randint(0, 9))]
    end = chance.choice(["\n", "\r\n"])
    return (end.join(lines) + chance.choice(["", end])).encode()


@pytest.fixture
def grow() -> Callable[..., None]:
    return _grow


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


@pytest.fixture
def file_tools(heald_host: HostFactory, work: Path) -> Tools:
    """Open a host whose agent has the file tools, configured as the test says."""

    @asynccontextmanager
    async def opened(config: Mapping[str, Any] | None = None) -> AsyncIterator[Call]:
        rows = [
            Row("session", "session"),
            Row("agent", "agent"),
            Row("files", "tools-files", config or {}),
        ]
        async with heald_host(rows=rows) as host:
            agent = await host.scope.require(agents).create(cwd=work)
            found = {c.value.name: c.value for c in agent.session.scope.collect(tools)}

            async def call(name: str, /, cancel: CancelToken | None = None, **written: Any) -> str:
                context = ToolContext(
                    agent=agent, call_id="call", cwd=work, cancel=cancel or CancelToken()
                )
                arguments = msgspec.convert(written, found[name].arguments)
                return await found[name].run(arguments, context)

            yield call

    return opened


@pytest.fixture
async def call(file_tools: Tools) -> AsyncIterator[Call]:
    async with file_tools() as call:
        yield call


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a directory that anybody may enter: those above `tmp_path` are closed."""
    with TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.fixture
def as_nobody() -> Iterator[Callable[[], None]]:
    """Let the test give up what root may do, if it is root."""
    mine = os.geteuid()
    yield lambda: os.seteuid(mine or 65_534)
    os.seteuid(mine)
