"""A prompt and a switch at the same time: the turn runs on one preset, and the log says which."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from heald import Host, Row
from heald_agent import Agent, agents
from heald_preset import PresetLocked, Presets, presets

Write = Callable[..., Path]
OpenPresets = Callable[..., AbstractAsyncContextManager[Host]]
NAMES = ("session", "projection", "models-scripted")
PERSONA = '[[rows]]\nid = "persona"\nplugin = "persona"\nconfig = {{ text = "{}" }}\n'


async def later(chance: random.Random, work: Callable[[], Awaitable[Any]]) -> Any:
    """Do something after other tasks, and threads that read files, had some turns."""
    for _ in range(chance.randrange(4)):
        await asyncio.to_thread(int)
    for _ in range(chance.randrange(40)):
        await asyncio.sleep(0)
    return await work()


async def race(agent: Agent, service: Presets, chance: random.Random) -> tuple[str, int]:
    """Let a prompt meet one or two switches.

    Returns what the turn must have run on, and how many switches were refused.
    """
    switches = ["b"] if chance.random() < 0.7 else ["b", "a"]
    outcomes = await asyncio.gather(
        later(chance, partial(agent.send, "go")),
        *(later(chance, partial(service.switch, agent.session, name)) for name in switches),
        return_exceptions=True,
    )
    assert (await agent.settled()).outcome == "completed"
    for wanted, outcome in zip(switches, outcomes[1:], strict=True):
        if isinstance(outcome, BaseException):
            assert isinstance(outcome, PresetLocked), outcome
        else:
            assert outcome.preset == wanted
    switched = [o for o in outcomes[1:] if not isinstance(o, BaseException) and o.seq is not None]
    events = [e for e in agent.session.hot() if e.type == "agent-preset/selected"]
    assert sorted(o.seq for o in switched) == [e.seq for e in events]
    refused = sum(isinstance(outcome, PresetLocked) for outcome in outcomes)
    return (events[-1].data["preset"] if events else "a"), refused


async def race_often(host: Host, cwd: Path, times: int) -> tuple[set[str], int]:
    chance, service = random.Random(5), host.scope.require(presets)
    seen, refused_in_all = set(), 0
    for n in range(times):
        standing = [await service.seat(name, None) for name in ("a", "b") if chance.random() < 0.5]
        agent = await host.scope.require(agents).create(cwd=cwd)
        expected, refused = await race(agent, service, chance)
        log = [event.type for event in agent.session.hot()]
        begins = log.index("turn/start")
        assert "agent-preset/selected" not in log[begins:], n
        context = agent.session.context()
        assert context is not None
        assert context.system == expected
        assert await service.running(agent.session) == expected
        seen.add(expected)
        refused_in_all += refused
        await agent.dispose()
        for seat in standing:
            await seat.release()
    return seen, refused_in_all


@pytest.mark.parametrize(
    ("storage", "times"),
    [
        ("persistence-memory", 300),
        ("persistence", 40),
        pytest.param("persistence-memory", 10_000, marks=pytest.mark.crash),
    ],
)
async def test_a_turn_runs_wholly_on_what_was_selected_before_it_or_the_switch_is_refused(
    open_presets: OpenPresets, write: Write, project: Path, storage: str, times: int
) -> None:
    for name in ("a", "b"):
        write(name, PERSONA.format(name))
    rows = [Row(name, name) for name in (*NAMES, storage)]
    agent = Row("agent", "agent", {"model": "scripted:echo"})
    async with open_presets(*rows, agent, default="a") as host:
        seen, refused = await race_often(host, project, times)

    if times >= 300:  # fewer may happen to end alike on a busy machine
        assert seen == {"a", "b"}
        assert refused
