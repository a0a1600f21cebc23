"""What a session was switched to holds wherever its log is read again, and when it is gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from heald import Host, Row, Scope
from heald_agent import agents
from heald_preset import (
    PresetConflict,
    PresetGone,
    PresetInvalid,
    PresetNotFound,
    presets,
)
from heald_query import session_query
from heald_session import LogOffset, SessionId, session_store
from heald_subagent import Delegation, subagents

Write = Callable[..., Path]
OpenHost = Callable[..., AbstractAsyncContextManager[Host]]
NAMES = (
    "session",
    "persistence",
    "projection",
    "projection-cache",
    "query",
    "subagent",
    "commands",
    "models-scripted",
)


def row(word: str) -> str:
    """Make a preset's row that contributes a word."""
    return f'[[rows]]\nid = "word"\nplugin = "word"\nconfig = {{ word = "{word}" }}\n'


def words(scope: Scope, probes: ModuleType) -> list[str]:
    """Return the words a scope sees."""
    return [found.value for found in scope.collect(probes.words)]


@pytest.fixture
def open_host(
    open_presets: Callable[..., AbstractAsyncContextManager[Host]], write: Write
) -> OpenHost:
    """Return a function that opens hosts on one home, with presets `a` and `b`."""
    for name in ("a", "b"):
        write(name, row(name))
    agent = Row("agent", "agent", {"model": "scripted:echo"})

    def open_host(*, without: tuple[str, ...] = ()) -> AbstractAsyncContextManager[Host]:
        rows = [Row(name, name) for name in NAMES if name not in without]
        return open_presets(*rows, agent, default="a")

    return open_host


async def switched(host: Host, cwd: Path) -> SessionId:
    """Make a stored session that started on `a` and was switched to `b`."""
    agent = await host.scope.require(agents).create(cwd=cwd)
    agent.session.append("session/renamed", {"title": "Mine"})
    await host.scope.require(presets).switch(agent.session, "b")
    await agent.dispose()
    return agent.session.id


async def running(host: Host, id_: SessionId, **options: Any) -> tuple[str | None, Scope]:
    """Resume a session; return what it runs and its scope."""
    agent = await host.scope.require(agents).resume(id_, **options)
    return await host.scope.require(presets).running(agent.session), agent.session.scope


@pytest.mark.parametrize("without", [(), ("projection-cache",), ("projection-cache", "projection")])
async def test_another_process_resumes_a_session_on_what_it_was_switched_to(
    open_host: OpenHost, project: Path, probes: ModuleType, without: tuple[str, ...]
) -> None:
    without = (*without, *(("query", "subagent") if "projection" in without else ()))
    async with open_host() as host:
        id_ = await switched(host, project)

    async with open_host(without=without) as host:
        preset, scope = await running(host, id_)

        assert (preset, words(scope, probes)) == ("b", ["b"])
        header = host.scope.require(session_store).live()[0].header
        assert header.agent_preset == "a", "the header says what it started on"
        with pytest.raises(PresetConflict) as caught:
            await host.scope.require(agents).resume(id_, preset="a")
        assert (caught.value.running, caught.value.asked) == ("b", "a")


async def test_a_cold_read_and_a_list_say_what_it_was_switched_to(
    open_host: OpenHost, project: Path
) -> None:
    async with open_host() as host:
        id_ = await switched(host, project)

    async with open_host() as host:
        query = host.scope.require(session_query)
        async with query.observe_session(id_, ["agentPreset"]) as seen:
            assert seen.projections.values == {"agentPreset": "b"}
        records = await query.list_sessions(keys=["agentPreset"])
        assert [r.projections and r.projections.values for r in records] == [{"agentPreset": "b"}]


async def test_a_fork_runs_on_what_the_source_ran_on_at_the_cut(
    open_host: OpenHost, project: Path, probes: ModuleType
) -> None:
    async with open_host() as host:
        id_ = await switched(host, project)

    async with open_host() as host:
        store = host.scope.require(session_store)
        early = await store.fork_stored(id_, cut=LogOffset(1))
        late = await store.fork(id_)

        for fork, expected in ((early.id, "a"), (late.id, "b")):
            preset, scope = await running(host, fork)
            assert (preset, words(scope, probes)) == (expected, [expected])


async def test_a_fork_that_is_blank_can_be_switched_itself(
    open_host: OpenHost, project: Path, probes: ModuleType
) -> None:
    async with open_host() as host:
        id_ = await switched(host, project)
        fork = await host.scope.require(session_store).fork(id_)
        agent = await host.scope.require(agents).resume(fork.id)

        choice = await host.scope.require(presets).switch(agent.session, "a")

        assert choice.seq == 2
        assert words(agent.session.scope, probes) == ["a"]


async def test_a_child_is_resumed_on_what_its_own_log_says(
    open_host: OpenHost, project: Path, write: Write
) -> None:
    async with open_host() as host:
        parent = await host.scope.require(agents).create(cwd=project)
        parent.session.append("session/renamed", {"title": "parent"})
        start = host.scope.require(subagents).start
        child = await start(parent, Delegation(task="hello", label="child", preset="b"))
        await host.scope.require(subagents).wait(parent, [child])
        parent_id = parent.session.id

    shutil.rmtree(write("b", "").parent)
    async with open_host() as host:
        parent = await host.scope.require(agents).resume(parent_id)
        with pytest.raises(PresetGone) as caught:
            await host.scope.require(subagents).send(parent, child, "more")
        assert (caught.value.session, caught.value.preset) == (child, "b")

        agent = await host.scope.require(agents).resume(child, continue_as="a")
        await agent.dispose()
        await host.scope.require(subagents).send(parent, child, "more")

        live = host.scope.require(session_store).get(child)
        assert live is not None
        assert live.scope.composition is parent.session.scope.composition


async def begun(host: Host, cwd: Path) -> SessionId:
    """Make a stored session on `b` in which a turn ran."""
    agent = await host.scope.require(agents).create(cwd=cwd, preset="b")
    await agent.send("hello")
    await agent.settled()
    await agent.dispose()
    return agent.session.id


async def test_a_log_whose_preset_is_gone_says_so_and_is_left_as_it_was(
    open_host: OpenHost, project: Path, write: Write
) -> None:
    async with open_host() as host:
        id_ = await begun(host, project)
    shutil.rmtree(write("b", "").parent)

    async with open_host() as host:
        with pytest.raises(PresetGone) as caught:
            await host.scope.require(agents).resume(id_)
        assert (caught.value.session, caught.value.preset) == (id_, "b")
        assert {"a", "standard"} <= set(caught.value.known)
        assert f"heald run --session {id_} --continue-as ID" in str(caught.value)
        assert host.scope.require(session_store).live() == ()
        async with host.scope.require(session_query).observe_session(id_, ["agentPreset"]) as seen:
            assert seen.projections.values == {"agentPreset": "b"}
            assert [e.type async for e in seen.events()][-1] == "turn/end"


async def test_going_on_with_another_preset_is_logged_and_holds_from_then_on(
    open_host: OpenHost, project: Path, write: Write, probes: ModuleType
) -> None:
    async with open_host() as host:
        id_ = await begun(host, project)
    shutil.rmtree(write("b", "").parent)

    async with open_host() as host:
        preset, scope = await running(host, id_, continue_as="a")
        assert (preset, words(scope, probes)) == ("a", ["a"])
        session = host.scope.require(session_store).live()[0]
        last = session.hot()[-1]
        assert (last.type, last.data) == ("agent-preset/selected", {"preset": "a"})
        assert session.flushed == session.end
    async with open_host() as host:
        assert (await running(host, id_))[0] == "a"


async def test_a_fork_of_a_log_whose_preset_is_gone_goes_on_with_another_too(
    open_host: OpenHost, project: Path, write: Write
) -> None:
    async with open_host() as host:
        id_ = await begun(host, project)
    shutil.rmtree(write("b", "").parent)

    async with open_host() as host:
        fork = await host.scope.require(session_store).fork_stored(id_)
        with pytest.raises(PresetGone):
            await running(host, fork.id)
        assert (await running(host, fork.id, continue_as="a"))[0] == "a"


async def test_a_preset_that_cannot_be_mounted_any_more_can_be_left_as_well(
    open_host: OpenHost, project: Path, write: Write
) -> None:
    async with open_host() as host:
        id_ = await begun(host, project)
    write("b", '[[rows]]\nid = "x"\nplugin = "uninstalled"\n')

    async with open_host() as host:
        with pytest.raises(PresetInvalid):
            await running(host, id_)
        with pytest.raises(PresetNotFound):
            await running(host, id_, continue_as="nope")
        assert (await running(host, id_, continue_as="a"))[0] == "a"


@pytest.mark.parametrize("state", ["live", "stored"])
async def test_a_session_whose_preset_is_there_cannot_go_on_with_another(
    open_host: OpenHost, project: Path, state: str, probes: ModuleType
) -> None:
    async with open_host() as host:
        id_ = await begun(host, project)
        if state == "live":
            await running(host, id_)

        with pytest.raises(PresetConflict):
            await running(host, id_, continue_as="a")

        preset, scope = await running(host, id_, continue_as="b")
        assert (preset, words(scope, probes)) == ("b", ["b"])
        session = host.scope.require(session_store).live()[0]
        assert "agent-preset/selected" not in [event.type for event in session.hot()]
