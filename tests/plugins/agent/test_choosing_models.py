from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from heald import Host, Row
from heald_agent import Agent, ModelUnknown, agents
from heald_commands import command_directory
from heald_models_scripted import Reply, Script, steps
from heald_projection import projections
from heald_session import LogOffset, SessionId, session_store

HostWith = Callable[..., AbstractAsyncContextManager[Host]]
ROWS = (Row("projection", "projection"), Row("commands", "commands"))
A = SessionId("a")
SCRIPTS: list[Script] = [steps(name, [Reply(text=f"I am {name}.")]) for name in ("one", "two")]


def selected(agent: Agent) -> list[str]:
    return [e.data["model"] for e in agent.session.hot() if e.type == "model/selected"]


def shown(agent: Agent) -> Any:
    service = agent.session.scope.require(projections)
    return service.snapshot(agent.session, ["modelSelection"]).values["modelSelection"]


async def said(agent: Agent) -> str:
    await agent.send("who are you?")
    return (await agent.settled()).text


async def test_a_named_model_is_the_sessions_choice_and_holds_when_it_is_resumed(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(extra=ROWS, storage=True, scripts=SCRIPTS) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:one", id=A)
        assert (selected(agent), shown(agent)) == (["scripted:one"], "scripted:one")
        await agent.session.flush()
    setting = {"model": "scripted:two"}
    async with host_with(extra=ROWS, storage=True, scripts=SCRIPTS, agent=setting) as host:
        agent = await host.scope.require(agents).resume(A)
        assert await said(agent) == "I am one."
        assert selected(agent) == ["scripted:one"]


async def test_a_model_named_on_resumption_goes_before_and_is_kept(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(extra=ROWS, storage=True, scripts=SCRIPTS) as host:
        resume = host.scope.require(agents).resume
        await host.scope.require(agents).create(cwd=tmp_path, model="scripted:one", id=A)
        agent = await resume(A, model="scripted:two")
        assert (agent.model, selected(agent)) == ("scripted:two", ["scripted:one", "scripted:two"])
        await agent.dispose()
        agent = await resume(A, model="scripted:one")
        await agent.dispose()
        agent = await resume(A)
        assert (agent.model, shown(agent)) == ("scripted:one", "scripted:one")


async def test_a_configured_model_is_no_choice_and_follows_the_setting(
    host_with: HostWith, tmp_path: Path
) -> None:
    for name, setting in (("one", "scripted:one"), ("two", "scripted:two")):
        more = {"agent": {"model": setting}}
        async with host_with(extra=ROWS, storage=True, scripts=SCRIPTS, **more) as host:
            registry = host.scope.require(agents)
            agent = await (
                registry.create(cwd=tmp_path, id=A) if name == "one" else registry.resume(A)
            )
            assert await said(agent) == f"I am {name}."
            assert (selected(agent), shown(agent)) == ([], None)


async def test_without_choice_and_setting_a_session_goes_on_as_it_ran_last(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(extra=ROWS, storage=True, scripts=SCRIPTS) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, id=A)
        agent.use_model("scripted:one", chosen=False)
        assert await said(agent) == "I am one."
        await agent.dispose()
        agent = await host.scope.require(agents).resume(A)
        assert (agent.model, selected(agent)) == ("scripted:one", [])


async def test_choosing_what_is_chosen_logs_nothing(host_with: HostWith, tmp_path: Path) -> None:
    async with host_with(extra=ROWS, scripts=SCRIPTS) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:one")
        agent.use_model("scripted:one")
        assert selected(agent) == ["scripted:one"]


async def test_a_fork_has_its_sources_choice(host_with: HostWith, tmp_path: Path) -> None:
    async with host_with(extra=ROWS, scripts=SCRIPTS) as host:
        await host.scope.require(agents).create(cwd=tmp_path, model="scripted:one", id=A)
        fork = await host.scope.require(session_store).fork(A, cut=LogOffset(1))
        agent = await host.scope.require(agents).attach(fork)
        assert (agent.model, shown(agent)) == ("scripted:one", "scripted:one")


async def test_the_command_shows_and_chooses_without_a_turn(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(extra=ROWS, scripts=SCRIPTS) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path)
        run = host.scope.require(command_directory).run
        told = await run(agent.session, "/model")
        assert "not chosen" in told
        assert "adapters: scripted" in told
        assert await run(agent.session, "/model scripted:two") == "The model is now scripted:two."
        assert "The model is scripted:two." in await run(agent.session, "/model")
        assert selected(agent) == ["scripted:two"]
        assert await said(agent) == "I am two."


async def test_the_command_refuses_what_nobody_speaks_to_and_changes_nothing(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(extra=ROWS, scripts=SCRIPTS) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:one")
        run = host.scope.require(command_directory).run
        for model in ("scriptd:two", "two"):
            with pytest.raises(ModelUnknown, match="scripted"):
                await run(agent.session, f"/model {model}")
        assert (agent.model, selected(agent)) == ("scripted:one", ["scripted:one"])


async def test_the_command_needs_an_agent(host_with: HostWith) -> None:
    async with host_with(extra=ROWS) as host:
        session = await host.scope.require(session_store).create(cwd=None)
        with pytest.raises(LookupError, match="no agent here"):
            await host.scope.require(command_directory).run(session, "/model scripted:two")
