"""Asking the model beside the conversation, between turns and never inside one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import attrs
import pytest

from heald import Cancelled, Host, Next
from heald_agent import (
    Agent,
    AgentBusy,
    ModelFailed,
    ModelNotConfigured,
    ModelReply,
    ModelRequest,
    RequestChanged,
    agents,
)
from heald_models_scripted import Conversation, Reply, Script
from heald_session import SessionClosed, UserMessage

HostWith = Callable[..., AbstractAsyncContextManager[Host]]
WHAT = (UserMessage("q", "what?"),)


@pytest.fixture
def asked() -> asyncio.Event:
    """Set when the model is told to wait, which it then does for a long time."""
    return asyncio.Event()


@pytest.fixture
def script(asked: asyncio.Event) -> Script:
    def play(conversation: Conversation) -> Reply:
        if conversation.prompt != "wait":
            return Reply(text=f"you said {conversation.prompt}")
        asked.set()
        return Reply(delay=600)

    return Script("play", play)


async def agent_of(host: Host, cwd: Path) -> Agent:
    return await host.scope.require(agents).create(cwd=cwd, model="scripted:play")


async def test_an_answer_is_given_to_the_asker_and_to_nobody_else(
    host_with: HostWith, script: Script, tmp_path: Path
) -> None:
    heard: list[str] = []
    async with host_with(scripts=[script], heard=heard) as host:
        agent = await agent_of(host, tmp_path)
        async with agent.aside() as aside:
            assert (await aside.ask(WHAT)).text == "you said what?"
            assert aside.model == "scripted:play"
            assert not agent.running
        assert heard == []
        assert agent.session.history() == ()
        assert [event.type for event in agent.session.hot()] == ["model/selected"]


async def test_it_is_not_open_beside_a_turn_or_another(
    host_with: HostWith, script: Script, asked: asyncio.Event, tmp_path: Path
) -> None:
    async with host_with(scripts=[script]) as host:
        agent = await agent_of(host, tmp_path)
        async with agent.aside():
            with pytest.raises(AgentBusy):
                await agent.aside().__aenter__()
        await agent.send("wait")
        await asked.wait()
        with pytest.raises(AgentBusy, match="wait until it is settled"):
            await agent.aside().__aenter__()
        agent.cancel("enough")
        await agent.settled()
        async with agent.aside():
            pass
        await agent.dispose()
        with pytest.raises(SessionClosed):
            await agent.aside().__aenter__()


async def test_a_message_waits_until_it_is_closed(
    host_with: HostWith, script: Script, tmp_path: Path
) -> None:
    async with host_with(scripts=[script]) as host:
        agent = await agent_of(host, tmp_path)
        async with agent.aside() as aside:
            await agent.send("hello")
            await aside.ask(WHAT)
            assert not agent.running
            assert agent.session.history() == ()
        assert (await agent.settled()).text == "you said hello"


async def test_it_is_cancelled_like_a_turn(
    host_with: HostWith, script: Script, asked: asyncio.Event, tmp_path: Path
) -> None:
    async with host_with(scripts=[script]) as host:
        agent = await agent_of(host, tmp_path)

        async def ask() -> None:
            async with agent.aside() as aside:
                await aside.ask([UserMessage("q", "wait")])

        asking = asyncio.create_task(ask())
        await asked.wait()
        agent.cancel("enough")
        with pytest.raises(Cancelled, match="enough"):
            await asking
        asked.clear()
        asking = asyncio.create_task(ask())
        await asked.wait()
        await agent.dispose()
        with pytest.raises(Cancelled, match="disposed of"):
            await asking


async def test_what_goes_wrong_with_a_turns_request_goes_wrong_with_it_too(
    host_with: HostWith, script: Script, tmp_path: Path
) -> None:
    async def change(
        request: ModelRequest, call_next: Next[ModelRequest, ModelReply]
    ) -> ModelReply:
        return await call_next(attrs.evolve(request, system="other"))

    async with host_with(scripts=[script], around_model=change) as host:
        agent = await agent_of(host, tmp_path)
        async with agent.aside() as aside:
            with pytest.raises(RequestChanged):
                await aside.ask(WHAT)
    async with host_with(scripts=[script], agent={"model_silence_s": 0.01}) as host:
        agent = await agent_of(host, tmp_path)
        async with agent.aside() as aside:
            with pytest.raises(ModelFailed, match="nothing arrived"):
                await aside.ask([UserMessage("q", "wait")])
        unconfigured = await host.scope.require(agents).create(cwd=tmp_path)
        with pytest.raises(ModelNotConfigured):
            await unconfigured.aside().__aenter__()
