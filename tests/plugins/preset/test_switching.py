"""A blank session changes its preset, as a whole or not at all; one that has begun does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from heald import Discovery, Host, NoConfig, Plugin, Row, Scope, implements
from heald.testing import HostFactory
from heald_agent import Agent, Agents, StateKey, agents
from heald_commands import command_directory
from heald_persistence import SessionNotSaved
from heald_plan import PlanEntered
from heald_preset import (
    PresetChoice,
    PresetInvalid,
    PresetLocked,
    PresetNotFound,
    Presets,
    presets,
)
from heald_projection import projections
from heald_query import Order, session_query
from heald_session import (
    AppendGuard,
    AppendRefused,
    Proposal,
    SessionClosed,
    SessionStore,
    append_guards,
    session_store,
)
from heald_subagent import Delegation, subagents

Write = Callable[..., Path]
OpenPresets = Callable[..., AbstractAsyncContextManager[Host]]
NAMES = (
    "session",
    "persistence",
    "projection",
    "query",
    "subagent",
    "commands",
    "models-scripted",
)
ROWS = (*(Row(name, name) for name in NAMES), Row("agent", "agent", {"model": "scripted:echo"}))


class Guard(Plugin[NoConfig]):
    """Refuses every selection."""

    @implements(append_guards)
    def guard(self) -> Iterable[AppendGuard]:
        def refuse(proposal: Proposal) -> None:
            if proposal.event.type == "agent-preset/selected":
                raise ValueError("not now")

        return [AppendGuard(refuse)]


def row(word: str, *, name: str = "word", plugin: str = "word", fail: bool = False) -> str:
    """Make a preset's row that contributes a word."""
    config = f'{{ word = "{word}", fail = {str(fail).lower()} }}'
    return f'[[rows]]\nid = "{name}"\nplugin = "{plugin}"\nconfig = {config}\n'


@pytest.fixture
async def host(open_presets: OpenPresets, write: Write) -> AsyncIterator[Host]:
    """Return a host that keeps sessions and runs agents, with the presets `a` and `b`."""
    for name in ("a", "b"):
        write(name, row(name))
    async with open_presets(*ROWS, default="a") as host:
        yield host


@pytest.fixture
def registry(host: Host) -> Agents:
    """Return the host's agents."""
    return host.scope.require(agents)


@pytest.fixture
async def agent(registry: Agents, project: Path) -> Agent:
    """Return an agent of a blank session on `a`."""
    return await registry.create(cwd=project)


def words(scope: Scope, probes: ModuleType) -> list[str]:
    """Return the words a scope sees, nearest first."""
    return [found.value for found in scope.collect(probes.words)]


def selections(agent: Agent) -> list[str]:
    """Return the presets that were selected in a session, in order."""
    found = [e for e in agent.session.hot() if e.type == "agent-preset/selected"]
    return [event.data["preset"] for event in found]


def projected(host: Host, agent: Agent) -> Any:
    """Return what the projection says."""
    service = host.scope.require(projections)
    return service.snapshot(agent.session, ["agentPreset"]).values["agentPreset"]


async def begin(agent: Agent) -> None:
    """Let a turn run."""
    await agent.send("hello")
    assert (await agent.settled()).outcome == "completed"


async def test_a_blank_session_switches_and_everyone_is_told_the_new_preset(
    host: Host, service: Presets, agent: Agent, probes: ModuleType
) -> None:
    choice = await service.switch(agent.session, "b")

    event = agent.session.hot()[-1]
    assert choice == PresetChoice("b", event.seq)
    assert (event.type, event.data) == ("agent-preset/selected", {"preset": "b"})
    assert agent.session.flushed > event.seq, "it is durable when the answer comes"
    assert words(agent.session.scope, probes) == ["b"]
    assert projected(host, agent) == await service.running(agent.session) == "b"
    listed = await host.scope.require(session_query).list_sessions(keys=["agentPreset"])
    assert [row.projections.values for row in listed if row.projections] == [{"agentPreset": "b"}]


async def test_switching_there_and_back_a_hundred_times_leaves_nothing_behind(
    host: Host, service: Presets, agent: Agent, probes: ModuleType
) -> None:
    tasks = len(asyncio.all_tasks())
    for n in range(100):
        wanted = "ba"[n % 2]
        await service.switch(agent.session, wanted)
        assert words(agent.session.scope, probes) == [wanted]
        assert projected(host, agent) == wanted

    assert selections(agent) == ["b", "a"] * 50
    started, undone = ([x for x in probes.log if x.startswith(w)] for w in ("start", "undone"))
    assert len(started) == len(undone) + 1 == 101
    assert len(asyncio.all_tasks()) == tasks


async def test_after_the_first_turn_began_nothing_is_switched(
    host: Host, service: Presets, agent: Agent, probes: ModuleType
) -> None:
    await begin(agent)
    end, constructed = agent.session.end, host.constructed

    for preset in ("a", "b", "nope"):
        with pytest.raises(PresetLocked) as caught:
            await service.switch(agent.session, preset)

    assert (caught.value.running, caught.value.asked) == ("a", "nope")
    assert "heald sessions new --preset nope" in str(caught.value)
    assert (agent.session.end, host.constructed) == (end, constructed)
    assert words(agent.session.scope, probes) == ["a"]


async def test_a_session_without_an_agent_meets_the_same_lock(
    service: Presets, store: SessionStore
) -> None:
    session = await store.create(cwd=None, agent_preset="a")
    assert (await service.switch(session, "b")).seq == 0
    session.append("turn/start", {"turn": 1})

    with pytest.raises(PresetLocked):
        await service.switch(session, "a")


async def test_a_turn_that_is_long_out_of_memory_locks_a_session_still(
    open_presets: OpenPresets, write: Write
) -> None:
    write("a", row("a"))
    small = Row("session", "session", {"hot_events": 8})
    async with open_presets(small, Row("persistence", "persistence")) as host:
        session = await host.scope.require(session_store).create(cwd=None, agent_preset="a")
        session.append("turn/start", {"turn": 1})
        session.append("turn/end", {"turn": 1, "outcome": "completed"})
        while session.hot_from <= 2:
            session.append("session/renamed", {"title": "x"})
            await session.flush()

        with pytest.raises(PresetLocked):
            await host.scope.require(presets).switch(session, "a")


async def test_commands_titles_and_plan_mode_do_not_end_blankness(
    host: Host, service: Presets, agent: Agent
) -> None:
    directory = host.scope.require(command_directory)
    await directory.run(agent.session, "/rename Something")
    await directory.run(agent.session, "/preset")
    agent.session.append("plan/entered", PlanEntered())

    assert (await service.switch(agent.session, "b")).seq is not None


async def test_an_unknown_preset_is_refused_with_those_there_are(
    service: Presets, agent: Agent, probes: ModuleType
) -> None:
    with pytest.raises(PresetNotFound) as caught:
        await service.switch(agent.session, "nope")

    assert {"a", "b", "standard", "minimal"} <= set(caught.value.known)
    assert (agent.session.end, words(agent.session.scope, probes)) == (0, ["a"])


async def test_a_preset_that_does_not_mount_is_refused_with_every_failed_row(
    service: Presets, agent: Agent, write: Write, probes: ModuleType
) -> None:
    write("bad", row("x", fail=True) + row("y", name="second", fail=True))
    composition = agent.session.scope.composition

    with pytest.raises(PresetInvalid) as caught:
        await service.switch(agent.session, "bad")

    assert [failed.row for failed in caught.value.failed] == ["word", "second"]
    assert agent.session.end == 0
    assert agent.session.scope.composition is composition
    assert words(agent.session.scope, probes) == ["a"]
    await begin(agent)


async def test_two_switches_at_once_follow_each_other_and_the_last_one_wins(
    service: Presets, agent: Agent, write: Write, probes: ModuleType
) -> None:
    write("c", row("c"))

    one, two = await asyncio.gather(
        service.switch(agent.session, "b"), service.switch(agent.session, "c")
    )

    assert [(choice.preset, choice.seq) for choice in (one, two)] == [("b", 0), ("c", 1)]
    assert selections(agent) == ["b", "c"]
    assert words(agent.session.scope, probes) == ["c"]


async def test_choosing_what_already_runs_mounts_and_logs_nothing(
    host: Host, service: Presets, agent: Agent
) -> None:
    composition, constructed = agent.session.scope.composition, host.constructed

    assert await service.switch(agent.session, "a") == PresetChoice("a", None)

    assert (agent.session.end, host.constructed) == (0, constructed)
    assert agent.session.scope.composition is composition


async def test_choosing_a_preset_that_was_edited_since_takes_the_newer_generation_and_logs_it(
    service: Presets, agent: Agent, write: Write, probes: ModuleType
) -> None:
    write("a", row("more"))

    choice = await service.switch(agent.session, "a")

    assert choice.seq == 0
    assert selections(agent) == ["a"]
    assert words(agent.session.scope, probes) == ["more"]


async def test_a_subagent_is_never_switched(host: Host, service: Presets, agent: Agent) -> None:
    store = host.scope.require(session_store)
    child = await store.create(cwd=None, origin="subagent", parent_session=agent.session.id)

    with pytest.raises(PresetLocked):
        await service.switch(child, "b")

    assert child.end == 0


async def test_if_the_event_is_refused_nothing_has_moved(
    heald_host: HostFactory,
    discovery: Discovery,
    write: Write,
    project: Path,
    probes: ModuleType,
) -> None:
    write("a", row("a"))
    write("b", row("b"))
    rows = [*ROWS, Row("preset", "preset", {"default": "a"}), Row("guard", "guard")]
    installed = Discovery(path=discovery.path, program={"guard": Guard})
    async with heald_host(rows=rows, discovery=installed) as host:
        agent = await host.scope.require(agents).create(cwd=project)
        before = agent.session.scope.composition

        with pytest.raises(AppendRefused):
            await host.scope.require(presets).switch(agent.session, "b")

        assert agent.session.end == 0
        assert agent.session.scope.composition is before
        assert words(agent.session.scope, probes) == ["a"]
        assert probes.log[-1] == "undone b", "what was mounted for it is stopped again"


async def test_a_switch_that_cannot_be_saved_is_no_success_though_it_holds(
    service: Presets, agent: Agent, probes: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def flush(_: object) -> None:
        raise SessionNotSaved(agent.session.id, "the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(type(agent.session), "flush", flush)
        with pytest.raises(SessionNotSaved):
            await service.switch(agent.session, "b")

    assert (selections(agent), words(agent.session.scope, probes)) == (["b"], ["b"])
    assert probes.log[-1] == "undone a"
    await begin(agent)


async def test_a_state_that_cannot_be_made_leaves_what_it_began_to_be_undone(
    service: Presets, agent: Agent, probes: ModuleType
) -> None:
    def make(_: Agent, stack: AsyncExitStack) -> None:
        stack.callback(probes.log.append, "undone in part")
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        agent.state(StateKey("broken", make))

    await service.switch(agent.session, "b")

    assert probes.log[2] == "undone in part"


async def test_a_session_that_closes_meanwhile_is_not_moved(
    service: Presets, agent: Agent, probes: ModuleType
) -> None:
    probes.gate.clear()
    probes.starting.clear()
    switching = asyncio.create_task(service.switch(agent.session, "b"))
    await probes.starting.wait()
    await agent.dispose()
    probes.gate.set()

    with pytest.raises(SessionClosed):
        await switching

    assert {"undone a", "undone b"} <= set(probes.log)


async def test_a_switch_that_is_given_up_leaves_the_session_as_it_was(
    service: Presets, agent: Agent, probes: ModuleType
) -> None:
    probes.gate.clear()
    probes.starting.clear()
    switching = asyncio.create_task(service.switch(agent.session, "b"))
    await probes.starting.wait()
    switching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await switching
    probes.gate.set()

    assert (agent.session.end, words(agent.session.scope, probes)) == (0, ["a"])
    assert (await service.switch(agent.session, "b")).seq == 0


async def test_the_old_composition_stops_once_nobody_is_left_on_it(
    service: Presets, registry: Agents, agent: Agent, project: Path, probes: ModuleType
) -> None:
    other = await registry.create(cwd=project)
    await service.switch(agent.session, "b")
    assert "stop a" not in probes.log

    await service.switch(other.session, "b")

    assert probes.log == ["start a", "start b", "stop a", "undone a"]
    await agent.dispose()
    await other.dispose()
    assert probes.log[4:] == ["stop b", "undone b"]


async def test_what_rows_of_the_old_preset_keep_for_the_agent_is_undone_before_they_stop(
    service: Presets, agent: Agent, probes: ModuleType
) -> None:
    def make(_: Agent, stack: AsyncExitStack) -> list[str]:
        stack.callback(probes.log.append, "state undone")
        return []

    passing, lasting = StateKey("passing", make), StateKey("lasting", make, lasting=True)
    states = (agent.state(passing), agent.state(lasting))

    await service.switch(agent.session, "b")

    assert probes.log == ["start a", "start b", "state undone", "stop a", "undone a"]
    assert agent.state(passing) is not states[0]
    assert agent.state(lasting) is states[1]
    await agent.dispose()
    assert probes.log.count("state undone") == 3


async def test_state_that_cannot_be_undone_does_not_keep_the_old_preset(
    service: Presets, agent: Agent, probes: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    def make(_: Agent, stack: AsyncExitStack) -> None:
        stack.callback(lambda: 1 / 0)

    agent.state(StateKey("broken", make))

    choice = await service.switch(agent.session, "b")

    assert choice.seq == 0
    assert probes.log[-1] == "undone a"
    assert "did not leave its old preset cleanly" in caplog.text


async def test_a_first_event_replaces_a_baseline_that_was_taken_before_it(
    host: Host, service: Presets, agent: Agent
) -> None:
    registry = host.scope.require(projections)
    before = registry.snapshot(agent.session, ["agentPreset"])
    await service.switch(agent.session, "b")
    after = registry.snapshot(agent.session, ["agentPreset"])

    assert (before.as_of_seq, before.values) == (-1, {"agentPreset": "a"})
    assert (after.as_of_seq, after.values) == (0, {"agentPreset": "b"})


async def test_a_switch_is_no_activity(host: Host, service: Presets, agent: Agent) -> None:
    registry = host.scope.require(projections)
    keys = ["sessionStats", "sessionListMetadata", "title"]
    agent.session.append("inbox/message", {"id": "m", "text": "hi", "lane": "queued"})
    before = registry.snapshot(agent.session, keys).values

    await service.switch(agent.session, "b")

    assert registry.snapshot(agent.session, keys).values == before


async def test_a_switch_leaves_a_session_where_it_stands_in_a_list(
    host: Host, service: Presets, registry: Agents, project: Path
) -> None:
    query, began = host.scope.require(session_query), host.now()
    made = []
    for minute in range(3):
        host.now = partial(int, began + minute * 60_000)
        made.append(await registry.create(cwd=project))

    async def ids(order: Order) -> list[str]:
        return [record.id for record in await query.list_sessions(order=order)]

    orders: tuple[Order, ...] = ("created", "-created", "-activity")
    before = [await ids(order) for order in orders]
    assert before[2] == [agent.session.id for agent in reversed(made)]
    host.now = partial(int, began + 3 * 60_000)

    await service.switch(made[0].session, "b")
    assert [await ids(order) for order in orders] == before

    await begin(made[0])
    assert (await ids("-activity"))[0] == made[0].session.id, "where a turn does not leave it"


async def test_children_join_the_generation_that_their_parent_was_switched_to(
    host: Host, service: Presets, agent: Agent, write: Write
) -> None:
    await service.switch(agent.session, "b")
    write("b", row("edited"))
    await begin(agent)

    start = host.scope.require(subagents).start
    child = await start(agent, Delegation(task="hello", label="child"))

    live = host.scope.require(session_store).get(child)
    assert live is not None
    assert live.header.agent_preset == "b"
    assert live.scope.composition is agent.session.scope.composition
