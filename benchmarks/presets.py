"""What presets cost: agents that share a composition, and a roster that is read anew each time."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import statistics
import sys
import tempfile
import time
import tomllib
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from unittest import mock

import pluggy

sys.path.insert(0, str(Path(__file__).parents[1]))  # this file is run as a script

from benchmarks.report import Measurement, main

import heald_preset
from heald import Host, open_host
from heald_agent import Agent, agents
from heald_preset import presets
from heald_session import session_store
from heald_session.testing import append_unchecked

HUNDRED = 100
AGENTS = 1_000
PRESETS = 200
ROUNDS = 40
SWITCHES = 200
NAMES = ("standard", "minimal")
SHIPPED = Path(heald_preset.__file__).parent / "shipped"
EXTENDING = """
label = "Reviewing"
description = "The standard agent, which reads what others wrote and changes nothing."
order = 30
extends = "standard"

[[patch]]
row = "persona"
config.merge.text = '''
You review changes that somebody else wrote, and change nothing yourself.

- Read the whole change before you say anything about a part of it, and the code around it.
- Say what breaks, for whom and when, and how you know. Run the tests if there are any.
- Tell what must be mended from what you would have done otherwise, and keep the latter short.
- Where you are not sure, ask. Where it is good, say so in one sentence.
'''

[[patch]]
row = "files"
config = { tools = ["read", "glob", "grep"] }
"""


@contextlib.asynccontextmanager
async def hosted(own: int = PRESETS) -> AsyncIterator[tuple[Host, Path]]:
    """Open a host of the default profile in a home of its own; return it, and a directory."""
    with tempfile.TemporaryDirectory() as folder:
        home, work = prepare(Path(folder), own)
        async with open_host(home=home, env={}, strict=True) as host:
            yield host, work


def prepare(folder: Path, own: int) -> tuple[Path, Path]:
    """Make a home with so many presets, and a directory to work in."""
    home, work = folder / "home", folder / "work"
    work.mkdir()
    write_presets(home / "presets", own)
    return home, work


def write_presets(root: Path, count: int) -> None:
    """Write presets of three sorts: two as full as the shipped ones, one that extends."""
    shipped = [(SHIPPED / name / "preset.toml").read_text("utf-8") for name in NAMES]
    for n in range(count):
        text = [*shipped, EXTENDING][n % 3]
        file = root / f"preset-{n:03}" / "preset.toml"
        file.parent.mkdir(parents=True)
        file.write_text(text.replace('label = "', f'label = "{n} '), "utf-8")


@contextlib.contextmanager
def registrations() -> Iterator[list[object]]:
    """Return what pluggy is asked to register within the block."""
    registered: list[object] = []
    register = pluggy.PluginManager.register

    def told(manager: pluggy.PluginManager, plugin: object, name: str | None = None) -> str | None:
        registered.append(plugin)
        return register(manager, plugin, name)

    with mock.patch.object(pluggy.PluginManager, "register", told):
        yield registered


async def sharing() -> list[Measurement]:
    """Count what the first, the second and the hundredth agent on `standard` bring about."""
    measured = []
    async with hosted() as (host, work):
        registry = host.scope.require(agents)
        made: list[Agent] = []
        for n in range(1, HUNDRED + 1):
            before = host.constructed
            with registrations() as registered:
                made.append(await registry.create(cwd=work, preset="standard"))
            if n in (1, 2, HUNDRED):
                limit = None if n == 1 else 0
                counts = {"constructs": host.constructed - before, "registers": len(registered)}
                for word, count in counts.items():
                    name = f"plugins that agent {n} on standard {word}"
                    measured.append(Measurement(name, count, "count", limit))
        for agent in made:
            await agent.dispose()
    return measured


async def memory() -> list[Measurement]:
    """Compare the memory of agents on two presets with that of as many sessions without."""
    async with hosted() as (host, work):
        registry, store = host.scope.require(agents), host.scope.require(session_store)
        mounted = [await registry.create(cwd=work, preset=name) for name in NAMES]

        async def agent(n: int) -> Agent:
            return await registry.create(cwd=work, preset=NAMES[n % 2])

        async def session(_: int) -> object:
            return await store.create(cwd=str(work), agent_preset="standard")

        alone, with_agents = await kept(session), await kept(agent)
        for one in mounted:
            await one.dispose()
    name = f"memory of one of {AGENTS} agents on two presets beyond its session"
    return [
        Measurement(name, (with_agents - alone) / AGENTS / 1024, "KiB", 64),
        Measurement("memory of a session", alone / AGENTS / 1024, "KiB"),
    ]


async def kept(make: Callable[[int], Awaitable[object]]) -> int:
    """Return how many bytes are held by as many things as there are to be agents."""
    gc.collect()
    tracemalloc.start()
    made = [await make(n) for n in range(AGENTS)]
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del made
    return held


async def roster() -> list[Measurement]:
    """Compare listing presets, and all that is wrong with each, with parsing their files."""
    async with hosted() as (host, _):
        service = host.scope.require(presets)
        listed = await service.roster(None)
        files = [preset.path / "preset.toml" for preset in listed]
        if broken := [preset.problem for preset in listed if preset.problem]:
            raise SystemExit("\n".join(broken))
        parsing, listing = float("inf"), float("inf")
        for _ in range(ROUNDS):
            began = time.perf_counter()
            for file in files:
                tomllib.loads(file.read_bytes().decode())
            read = time.perf_counter()
            await service.roster(None)
            parsing = min(parsing, read - began)
            listing = min(listing, time.perf_counter() - read)
    name = f"roster of {len(files)} presets / reading and parsing their files"
    return [
        Measurement(name, listing / parsing, "x", 2),
        Measurement("roster", listing * 1000, "ms"),
    ]


async def switching() -> list[Measurement]:
    """Compare switching a blank session between mounted presets with logging the event alone."""
    async with hosted() as (host, work):
        registry, service = host.scope.require(agents), host.scope.require(presets)
        mounted = [await registry.create(cwd=work, preset=name) for name in NAMES]
        agent = await registry.create(cwd=work, preset=NAMES[0])
        alone = await host.scope.require(session_store).create(cwd=str(work))
        before, logging, moving = host.constructed, [], []
        for n in range(SWITCHES):  # by turns, since a disk's mood changes
            began = time.perf_counter()
            append_unchecked(alone, "agent-preset/selected", {"preset": NAMES[n % 2]})
            await alone.flush()
            logged = time.perf_counter()
            await service.switch(agent.session, NAMES[(n + 1) % 2])
            logging.append(logged - began)
            moving.append(time.perf_counter() - logged)
        constructed = host.constructed - before
        for one in (*mounted, agent):
            await one.dispose()
    name = "switching a blank session between mounted presets"
    ratio = statistics.median(moving) / statistics.median(logging)
    return [
        Measurement(f"plugins constructed by {name}", constructed, "count", 0),
        Measurement(f"{name} / an append and flush of the event", ratio, "x", 5),
        Measurement("switching", statistics.median(moving) * 1000, "ms"),
    ]


def everything() -> Iterator[Measurement]:
    """Measure one thing after another."""
    for measure in (sharing, memory, switching, roster):
        yield from asyncio.run(measure())


if __name__ == "__main__":
    main(everything())
