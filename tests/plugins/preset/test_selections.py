"""Only what moves a session logs that it was moved; logs that say so load all the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from heald import Host, Row
from heald_agent import Agent, agents
from heald_preset import AgentPresetSelected, Presets, presets
from heald_session import AppendRefused, NewEvent, SessionRenamed, SessionStore, session_store

OpenPresets = Callable[..., AbstractAsyncContextManager[Host]]
NAMES = ("session", "persistence", "projection", "commands", "models-scripted")
ROWS = (*(Row(name, name) for name in NAMES), Row("agent", "agent", {"model": "scripted:echo"}))
SELECTED = "agent-preset/selected"
B = AgentPresetSelected("b")


@pytest.fixture
async def host(open_presets: OpenPresets, write: Callable[..., Path]) -> AsyncIterator[Host]:
    """Return a host that keeps sessions and runs agents, with the presets `a` and `b`."""
    for name in ("a", "b"):
        config = f'{{ word = "{name}" }}'
        write(name, f'[[rows]]\nid = "word"\nplugin = "word"\nconfig = {config}\n')
    async with open_presets(*ROWS, default="a") as host:
        yield host


@pytest.fixture
async def agent(host: Host, project: Path) -> Agent:
    """Return an agent of a blank session on `a`."""
    return await host.scope.require(agents).create(cwd=project)


def selections(agent: Agent) -> list[Any]:
    return [event.data for event in agent.session.hot() if event.type == SELECTED]


@pytest.mark.parametrize("prompts", [0, 1])
async def test_a_selection_that_moved_nobody_is_refused_and_what_to_do_is_told(
    host: Host, agent: Agent, prompts: int
) -> None:
    for _ in range(prompts):
        await agent.send("hello")
        await agent.settled()
    before, end = agent.session.scope.composition, agent.session.end

    with pytest.raises(AppendRefused) as caught:
        agent.session.append(SELECTED, B)

    refused = caught.value
    assert (refused.code, refused.type, refused.plugin) == ("APPEND_REFUSED", SELECTED, "preset")
    assert "`switch` of the service `presets`" in str(refused)
    assert f"heald presets use ID --session {agent.session.id}" in str(refused)
    assert agent.session.end == end
    assert agent.session.scope.composition is before
    assert await host.scope.require(presets).running(agent.session) == "a"


async def test_a_switch_opens_the_log_to_itself_alone(service: Presets, agent: Agent) -> None:
    await service.switch(agent.session, "b")

    with pytest.raises(AppendRefused):
        agent.session.append(SELECTED, AgentPresetSelected("a"))

    assert selections(agent) == [{"preset": "b"}]


async def test_a_switch_of_one_session_lets_nobody_log_one_of_another(
    service: Presets, host: Host, agent: Agent, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await host.scope.require(agents).create(cwd=project)
    errors: list[BaseException] = []
    append = type(agent.session).append

    def meanwhile(session: Any, type: str, data: Any, **how: Any) -> Any:  # noqa: A002
        if session is agent.session:
            try:
                append(other.session, SELECTED, B)
            except AppendRefused as error:
                errors.append(error)
        return append(session, type, data, **how)

    monkeypatch.setattr(type(agent.session), "append", meanwhile)
    await service.switch(agent.session, "b")

    assert len(errors) == 1
    assert (selections(agent), selections(other)) == ([{"preset": "b"}], [])


async def test_a_new_session_may_begin_with_its_choice(store: SessionStore) -> None:
    session = await store.create(cwd=None, agent_preset="b", first=[NewEvent(SELECTED, B)])

    assert [event.type for event in session.hot()] == [SELECTED]


async def test_a_new_session_chooses_before_anything_else_or_not_at_all(
    store: SessionStore, agent: Agent
) -> None:
    first = [NewEvent("session/renamed", SessionRenamed("odd")), NewEvent(SELECTED, B)]
    with pytest.raises(AppendRefused):
        await store.create(cwd=None, agent_preset="a", first=first)

    await agent.send("hello")
    await agent.settled()
    with pytest.raises(AppendRefused):
        await store.fork(agent.session.id, first=[NewEvent(SELECTED, B)])

    assert store.live() == (agent.session,)


async def test_logs_with_selections_load_are_forked_and_go_on(
    host: Host, service: Presets, agent: Agent
) -> None:
    await service.switch(agent.session, "b")
    await agent.send("hello")
    await agent.settled()
    store = host.scope.require(session_store)
    fork = await store.fork(agent.session.id)
    stored = await store.fork_stored(agent.session.id)
    await agent.dispose()

    for id_ in (agent.session.id, stored.id):
        again = await host.scope.require(agents).resume(id_)
        assert selections(again) == [{"preset": "b"}]
        assert await service.running(again.session) == "b"
    assert await service.running(fork) == "b"
