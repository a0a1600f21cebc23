from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from heald import CancelToken, Host
from heald_agent import Agent, ModelReply, ModelRequest, TextDelta, Tool, ToolContext, agents
from heald_models_scripted import Call, Conversation, Reply, Script
from heald_session import SessionClosed, session_store

HostWith = Callable[..., AbstractAsyncContextManager[Host]]


class Nothing(msgspec.Struct):
    pass


def logged(agent: Agent, *types: str) -> list[Any]:
    return [event.data for event in agent.session.hot() if event.type in types]


class SlowModels:
    """A model that says something and then waits until it is let go."""

    name = "slow"

    def __init__(self) -> None:
        self.said = asyncio.Event()
        self.closed = asyncio.Event()

    async def stream(self, request: ModelRequest, *, cancel: CancelToken) -> Any:
        try:
            yield TextDelta("I was about to")
            self.said.set()
            await asyncio.Event().wait()
            yield ModelReply(text="never")
        finally:
            self.closed.set()


def calls(*names: str) -> Script:
    """Make a script that calls tools for the prompt `work` and answers any other."""

    def play(conversation: Conversation) -> Reply:
        if conversation.prompt == "work" and conversation.step == 0:
            return Reply(calls=tuple(Call(tool=name) for name in names))
        return Reply(text=f"answer to {conversation.prompt}")

    return Script("calls", play)


def gated(name: str, **more: Any) -> tuple[Tool[Nothing], asyncio.Event, list[str]]:
    started, ends = asyncio.Event(), []

    async def run(_arguments: Nothing, _context: ToolContext) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        return "never"

    made = Tool(name=name, description="Wait.", arguments=Nothing, run=run, **more)
    return made, started, ends


async def test_cancelling_a_stream_keeps_what_was_said_and_records_the_first_cause(
    host_with: HostWith, tmp_path: Path
) -> None:
    model = SlowModels()
    async with host_with(adapters=[model]) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="slow:one")
        await agent.send("go")
        await model.said.wait()
        assert agent.running
        agent.cancel("the person said stop")
        agent.cancel("too late")
        outcome = await agent.settled()
        assert model.closed.is_set()
        assert logged(agent, "assistant/message") == [
            {"text": "I was about to", "finish": "interrupted"}
        ]
        assert logged(agent, "turn/end") == [
            {"turn": 1, "outcome": "aborted", "cause": "the person said stop"}
        ]
    assert (outcome.outcome, outcome.cause) == ("aborted", "the person said stop")
    assert outcome.error is None


async def test_cancelling_tools_ends_the_running_and_answers_those_not_started(
    host_with: HostWith, tmp_path: Path
) -> None:
    first, started, ends = gated("first")
    second, second_started, _ = gated("second")
    script = calls("first", "second", "second")
    async with host_with(tools=[first, second], scripts=[script]) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:calls")
        await agent.send("work")
        await started.wait()
        agent.cancel("enough")
        outcome = await agent.settled()
        results = logged(agent, "tool/result")
        assert [result["call_id"] for result in results] == ["call-1", "call-2", "call-3"]
        assert results[0]["text"].startswith("Cancelled while running (enough)")
        assert [r["text"] for r in results[1:]] == ["Not run: the turn was cancelled (enough)."] * 2
        assert all(result["is_error"] for result in results)
        assert len(logged(agent, "step/start")) == 1
    assert ends == ["cancelled"]
    assert not second_started.is_set()
    assert outcome.outcome == "aborted"


async def test_cancelling_reaches_every_body_that_runs_beside_others(
    host_with: HostWith, tmp_path: Path
) -> None:
    waiting, started, ends = gated("waiting", parallel=True)

    async def quick(_arguments: Nothing, _context: ToolContext) -> str:
        return "quick"

    beside = Tool(name="quick", description="Q.", arguments=Nothing, run=quick, parallel=True)
    script = calls("quick", "waiting", "waiting")
    async with host_with(tools=[waiting, beside], scripts=[script]) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:calls")
        await agent.send("work")
        await started.wait()
        agent.cancel("enough")
        await agent.settled()
        results = logged(agent, "tool/result")
    assert results[0]["text"] == "quick"
    assert len(results) == 3
    assert set(ends) == {"cancelled"}


async def test_a_message_that_arrives_while_a_turn_is_cancelled_is_not_lost(
    host_with: HostWith, tmp_path: Path
) -> None:
    waiting, started, _ = gated("waiting")
    async with host_with(tools=[waiting], scripts=[calls("waiting")]) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:calls")
        await agent.send("work")
        await started.wait()
        agent.cancel("enough")
        await agent.send("queued")
        await agent.send("steered", lane="steer")
        outcome = await agent.settled()
        ends = [data["outcome"] for data in logged(agent, "turn/end")]
        told = [data["text"] for data in logged(agent, "user/message")]
    assert ends == ["aborted", "completed"]
    assert told == ["work", "queued", "steered"]
    assert outcome.text == "answer to steered"


async def test_cancelling_when_nothing_runs_is_nothing(host_with: HostWith, tmp_path: Path) -> None:
    async with host_with() as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:echo")
        agent.cancel("early")
        await agent.send("hello")
        assert (await agent.settled()).outcome == "completed"


async def test_whoever_stops_waiting_does_not_stop_the_turn(
    host_with: HostWith, tmp_path: Path
) -> None:
    model = SlowModels()
    async with host_with(adapters=[model]) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="slow:one")
        await agent.send("go")
        waiter = asyncio.ensure_future(agent.settled())
        await model.said.wait()
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert agent.running
        agent.cancel("done with it")
        assert (await agent.settled()).cause == "done with it"


async def test_disposing_cancels_the_turn_and_leaves_the_session(
    host_with: HostWith, tmp_path: Path
) -> None:
    model = SlowModels()
    async with host_with(adapters=[model]) as host:
        registry = host.scope.require(agents)
        agent = await registry.create(cwd=tmp_path, model="slow:one")
        await agent.send("go")
        await model.said.wait()
        await asyncio.gather(agent.dispose(), agent.dispose())
        assert logged(agent, "turn/end")[0]["cause"] == "the agent was disposed of"
        assert agent.session.closed
        assert registry.get(agent.session.id) is None
        with pytest.raises(SessionClosed):
            await agent.send("more")
        assert (await agent.settled()).outcome == "aborted"


async def test_a_session_that_others_dispose_of_takes_its_agent_with_it(
    host_with: HostWith, tmp_path: Path
) -> None:
    model = SlowModels()
    async with host_with(adapters=[model]) as host:
        registry = host.scope.require(agents)
        agent = await registry.create(cwd=tmp_path, model="slow:one")
        await agent.send("go")
        await model.said.wait()
        await host.scope.require(session_store).dispose(agent.session)
        assert registry.get(agent.session.id) is None
        assert model.closed.is_set()
        assert not agent.running


async def test_a_host_that_stops_ends_its_turns_while_they_can_be_logged(
    host_with: HostWith, tmp_path: Path
) -> None:
    model = SlowModels()
    async with host_with(adapters=[model], storage=True) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="slow:one")
        await agent.send("go")
        await model.said.wait()
    assert logged(agent, "turn/end")[0]["outcome"] == "aborted"
    assert agent.session.flushed == agent.session.end


async def test_a_tool_may_dispose_of_the_agent_it_runs_for(
    host_with: HostWith, tmp_path: Path
) -> None:
    async def run(_arguments: Nothing, context: ToolContext) -> str:
        await context.agent.dispose()
        return "gone"

    last = Tool(name="last", description="End.", arguments=Nothing, run=run)
    async with host_with(tools=[last], scripts=[calls("last")]) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:calls")
        await agent.send("work")
        outcome = await agent.settled()
        await agent.dispose()
        assert agent.session.closed
    assert outcome.outcome == "aborted"
