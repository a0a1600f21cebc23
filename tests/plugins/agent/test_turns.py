from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest

from heald import Cancelled, CancelToken, Host
from heald_agent import (
    Agent,
    ModelFailed,
    ModelNotConfigured,
    ModelReply,
    ModelRequest,
    ModelUnknown,
    TextDelta,
    Tool,
    ToolContext,
    agents,
)
from heald_models_scripted import Call, Conversation, Reply, Script, steps
from heald_session import AppendGuard, Proposal, ToolCall

HostWith = Callable[..., AbstractAsyncContextManager[Host]]
Next = Callable[[ModelRequest], Awaitable[ModelReply]]


class Text(msgspec.Struct):
    text: str = ""


async def ready(host: Host, cwd: Path, script: str) -> Agent:
    return await host.scope.require(agents).create(cwd=cwd, model=f"scripted:{script}")


def logged(agent: Agent, *types: str) -> list[Any]:
    return [event.data for event in agent.session.hot() if event.type in types]


def types_of(agent: Agent) -> list[str]:
    return [event.type for event in agent.session.hot()]


def waiting_tool(started: asyncio.Event, go_on: asyncio.Event) -> Tool[Text]:
    async def run(_arguments: Text, _context: ToolContext) -> str:
        started.set()
        await go_on.wait()
        return "waited"

    return Tool(name="wait", description="Wait.", arguments=Text, run=run)


async def test_a_prompt_is_one_turn_whose_events_come_in_order(
    host_with: HostWith, tmp_path: Path
) -> None:
    heard: list[str] = []
    script = steps("hi", [Reply(text="Good day to you.")])
    async with host_with(scripts=[script], heard=heard) as host:
        agent = await ready(host, tmp_path, "hi")
        message = await agent.send("hello")
        outcome = await agent.settled()
        assert types_of(agent) == [
            "model/selected",
            "inbox/message",
            "turn/start",
            "user/message",
            "turn/context",
            "step/start",
            "assistant/message",
            "step/end",
            "turn/end",
        ]
        assert [data["id"] for data in logged(agent, "inbox/message", "user/message")] == [
            message,
            message,
        ]
        assert logged(agent, "turn/end") == [{"turn": 1, "outcome": "completed"}]
        assert agent.session.flushed == agent.session.end
    assert (outcome.turn, outcome.outcome, outcome.text) == (1, "completed", "Good day to you.")
    assert len(heard) > 1
    assert "".join(heard) == "Good day to you."


async def test_tool_calls_lead_to_another_step_and_turns_are_counted(
    host_with: HostWith, tmp_path: Path
) -> None:
    async def run(arguments: Text, context: ToolContext) -> str:
        return f"{arguments.text} in {context.cwd.name}"

    shout = Tool(name="shout", description="Shout.", arguments=Text, run=run)
    script = steps(
        "two",
        [Reply(text="Let me see.", calls=(Call(tool="shout", arguments={"text": "A"}),)), Reply()],
    )
    async with host_with(tools=[shout], scripts=[script]) as host:
        agent = await ready(host, tmp_path, "two")
        for _ in range(2):
            await agent.send("go")
            await agent.settled()
        starts = logged(agent, "turn/start", "step/start")
        assert [(data["turn"], data.get("step")) for data in starts] == [
            (1, None),
            (1, 1),
            (1, 2),
            (2, None),
            (2, 1),
            (2, 2),
        ]
        results = logged(agent, "tool/result")
        assert [data["text"] for data in results] == [f"A in {tmp_path.name}"] * 2
        assert [data["call_id"] for data in results] == ["call-1", "call-2"]


async def test_a_queued_message_opens_the_next_turn_and_a_steering_one_joins_the_next_step(
    host_with: HostWith, tmp_path: Path
) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()
    script = steps("wait", [Reply(calls=(Call(tool="wait"),)), Reply(text="done")])
    async with host_with(tools=[waiting_tool(started, go_on)], scripts=[script]) as host:
        agent = await ready(host, tmp_path, "wait")
        await agent.send("first")
        await started.wait()
        await agent.send("queued")
        await agent.send("steer", lane="steer")
        go_on.set()
        outcome = await agent.settled()
        wanted = ("turn/start", "step/start", "user/message")
        seen = [
            event.data.get("text") or event.type
            for event in agent.session.hot()
            if event.type in wanted
        ]
        assert seen[:6] == [
            "turn/start",
            "first",
            "step/start",
            "steer",
            "step/start",
            "step/start",
        ]
        assert seen[6:8] == ["turn/start", "queued"]
    assert outcome.turn == 2


async def test_an_empty_answer_is_logged_once_and_not_sent_again(
    host_with: HostWith, tmp_path: Path
) -> None:
    asked: list[ModelRequest] = []

    async def watch(request: ModelRequest, call_next: Next) -> ModelReply:
        asked.append(request)
        return await call_next(request)

    script = steps("mute", [Reply()])
    async with host_with(scripts=[script], around_model=watch) as host:
        agent = await ready(host, tmp_path, "mute")
        for _ in range(2):
            await agent.send("say something")
            await agent.settled()
        assert len(logged(agent, "assistant/message")) == 2
        assert [m.text for m in asked[1].messages] == ["say something", "say something"]


async def test_a_tool_that_cannot_be_shown_fails_the_turn_and_names_its_row(
    host_with: HostWith, tmp_path: Path
) -> None:
    async def run(_arguments: Any, _context: ToolContext) -> str:
        return "never"

    odd: Tool[Any] = Tool(name="odd", description="Odd.", arguments=int, run=run)
    async with host_with(tools=[odd]) as host:
        agent = await ready(host, tmp_path, "echo")
        await agent.send("hello")
        outcome = await agent.settled()
    assert outcome.error is not None
    assert outcome.error.code == "TOOL_INVALID"
    assert "'odd' of row brings" in str(outcome.error)


async def test_a_turn_that_goes_on_for_ever_ends_at_its_limit(
    host_with: HostWith, tmp_path: Path
) -> None:
    script = steps("loop", [Reply(calls=(Call(tool="nothing"),))])
    async with host_with(scripts=[script], agent={"max_steps": 3}) as host:
        agent = await ready(host, tmp_path, "loop")
        await agent.send("go")
        outcome = await agent.settled()
        assert len(logged(agent, "step/start")) == 3
        assert logged(agent, "turn/end")[0]["outcome"] == "failed"
        assert "STEP_LIMIT" in logged(agent, "turn/end")[0]["cause"]
    assert outcome.error is not None
    assert outcome.error.code == "STEP_LIMIT"


async def test_a_failed_request_ends_the_turn_keeps_what_arrived_and_the_agent_goes_on(
    host_with: HostWith, tmp_path: Path
) -> None:
    def play(conversation: Conversation) -> Reply:
        if conversation.prompt == "break":
            return Reply(text="Half of", calls=(Call(tool="x"),), failure="network")
        return Reply(text="whole")

    async with host_with(scripts=[Script("moody", play)]) as host:
        agent = await ready(host, tmp_path, "moody")
        await agent.send("break")
        failed = await agent.settled()
        assert logged(agent, "assistant/message") == [{"text": "Half of", "finish": "interrupted"}]
        await agent.send("go on")
        assert (await agent.settled()).text == "whole"
        assert not agent.running
    assert (failed.outcome, failed.text) == ("failed", "Half of")
    assert isinstance(failed.error, ModelFailed)
    assert failed.error.kind == "network"


async def test_a_failure_before_any_text_leaves_no_empty_answer(
    host_with: HostWith, tmp_path: Path
) -> None:
    script = steps("no", [Reply(failure="authentication")])
    async with host_with(scripts=[script]) as host:
        agent = await ready(host, tmp_path, "no")
        await agent.send("go")
        await agent.settled()
        assert logged(agent, "assistant/message") == []


async def test_a_model_that_goes_silent_is_a_typed_failure(
    host_with: HostWith, tmp_path: Path
) -> None:
    script = steps("silent", [Reply(text="never", delay=3600)])
    async with host_with(scripts=[script], agent={"model_silence_s": 0.05}) as host:
        agent = await ready(host, tmp_path, "silent")
        await agent.send("go")
        outcome = await agent.settled()
    assert isinstance(outcome.error, ModelFailed)
    assert (outcome.error.kind, outcome.error.model) == ("timeout", "scripted:silent")


@pytest.mark.parametrize("where", ["evolve", "in place"])
async def test_middleware_may_not_change_what_the_model_sees(
    host_with: HostWith, tmp_path: Path, where: str
) -> None:
    async def meddle(request: ModelRequest, call_next: Next) -> ModelReply:
        if where == "evolve":
            return await call_next(attrs.evolve(request, system="Be evil."))
        request.tools[0].parameters["extra"] = True
        return await call_next(request)

    tool = waiting_tool(asyncio.Event(), asyncio.Event())
    async with host_with(around_model=meddle, tools=[tool]) as host:
        agent = await ready(host, tmp_path, "echo")
        await agent.send("go")
        outcome = await agent.settled()
        assert logged(agent, "assistant/message") == []
        context = agent.session.context()
        assert context is not None
        assert "extra" not in context.tools[0].parameters
    assert outcome.error is not None
    assert outcome.error.code == "REQUEST_CHANGED"


async def test_middleware_that_asks_again_gets_an_answer_of_its_own(
    host_with: HostWith, tmp_path: Path
) -> None:
    tries: list[str] = []

    def play(_conversation: Conversation) -> Reply:
        tries.append("try")
        return Reply(text=f"answer {len(tries)}", failure=None if len(tries) > 1 else "server")

    async def again(request: ModelRequest, call_next: Next) -> ModelReply:
        try:
            return await call_next(request)
        except ModelFailed:
            return await call_next(request)

    async with host_with(around_model=again, scripts=[Script("flaky", play)]) as host:
        agent = await ready(host, tmp_path, "flaky")
        await agent.send("go")
        outcome = await agent.settled()
        assert [data["text"] for data in logged(agent, "assistant/message")] == ["answer 2"]
    assert outcome.outcome == "completed"


async def test_middleware_that_breaks_ends_the_turn_and_not_the_agent(
    host_with: HostWith, tmp_path: Path
) -> None:
    broken = [True]

    async def breaks(request: ModelRequest, call_next: Next) -> ModelReply:
        if broken:
            broken.clear()
            raise SystemExit(3)
        return await call_next(request)

    async with host_with(around_model=breaks) as host:
        agent = await ready(host, tmp_path, "echo")
        await agent.send("one")
        outcome = await agent.settled()
        assert outcome.error is not None
        assert outcome.error.code == "TURN_FAILED"
        await agent.send("two")
        assert (await agent.settled()).text == "two"


async def test_a_turn_that_may_not_open_leaves_its_message_undelivered_and_stops(
    host_with: HostWith, tmp_path: Path
) -> None:
    refusing = [True]

    def guard(proposal: Proposal) -> None:
        if refusing and proposal.event.type == "turn/start":
            raise ValueError("not now")

    async with host_with(append=[AppendGuard(guard)]) as host:
        agent = await ready(host, tmp_path, "echo")
        await agent.send("one")
        outcome = await agent.settled()
        assert outcome.error is not None
        assert outcome.error.code == "APPEND_REFUSED"
        assert types_of(agent) == ["model/selected", "inbox/message"]
        refusing.clear()
        await agent.send("two")
        await agent.settled()
        assert [data["text"] for data in logged(agent, "user/message")] == ["one", "two"]


async def test_a_barrier_that_fails_sends_no_request(
    host_with: HostWith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def play(conversation: Conversation) -> Reply:
        asked.append(conversation.prompt)
        return Reply(text="hello")

    async with host_with(scripts=[Script("count", play)]) as host:
        agent = await ready(host, tmp_path, "count")
        flush = agent.session.flush

        async def full() -> None:
            if any(event.type == "step/start" for event in agent.session.hot()):
                raise ModelFailed("disk", "server", "the disk is full")
            await flush()

        with monkeypatch.context() as patch:
            patch.setattr(agent.session, "flush", full)
            await agent.send("go")
            outcome = await agent.settled()
        assert asked == []
        assert outcome.outcome == "failed"
        assert logged(agent, "turn/end")[0]["outcome"] == "failed"
        await agent.send("again")
        assert (await agent.settled()).outcome == "completed"
        assert asked == ["again"]


async def test_without_a_model_nothing_is_accepted_until_one_is_named(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with() as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path)
        with pytest.raises(ModelNotConfigured):
            await agent.send("hello")
        assert types_of(agent) == []
        with pytest.raises(ModelUnknown, match="did you mean 'scripted'"):
            agent.use_model("script:echo")
        with pytest.raises(ModelUnknown, match="adapter:model"):
            agent.use_model("scripted")
        agent.use_model("scripted:echo")
        await agent.send("hello")
        assert (await agent.settled()).text == "hello"


async def test_another_model_is_used_from_the_next_step_on(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(scripts=[steps("hi", [Reply(text="hi")])]) as host:
        agent = await ready(host, tmp_path, "echo")
        await agent.send("one")
        await agent.settled()
        agent.use_model("scripted:hi")
        await agent.send("two")
        await agent.settled()
        assert [data["model"] for data in logged(agent, "step/start")] == [
            "scripted:echo",
            "scripted:hi",
        ]


async def test_a_request_that_cancels_itself_failed_and_was_not_aborted(
    host_with: HostWith, tmp_path: Path
) -> None:
    async def give_up(_request: ModelRequest, _call_next: Next) -> ModelReply:
        raise Cancelled("somebody else")

    async with host_with(around_model=give_up) as host:
        agent = await ready(host, tmp_path, "echo")
        await agent.send("go")
        outcome = await agent.settled()
    assert (outcome.outcome, outcome.cause) == (
        "failed",
        "CANCELLED: cancelled (somebody else); nothing more was done",
    )


class OddModels:
    """A model whose answers are as bad as a stream can make them."""

    name = "odd"

    async def stream(
        self, request: ModelRequest, *, cancel: CancelToken
    ) -> AsyncIterator[TextDelta | ModelReply]:
        yield TextDelta("a\ud800b")
        if request.model == "unsettled":
            return
        calls = (
            ToolCall("same", "wait", {"text": float("nan")}),
            ToolCall("same", "wait", {"text": 2**60}),
            ToolCall("", "wait\udfff", "{not json"),
        )
        yield ModelReply(text="a\ud800b", tool_calls=() if len(request.messages) > 1 else calls)


async def test_an_answer_the_log_could_not_hold_is_made_fit_and_every_call_answered(
    host_with: HostWith, tmp_path: Path
) -> None:
    tool = waiting_tool(asyncio.Event(), asyncio.Event())
    async with host_with(adapters=[OddModels()], tools=[tool]) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="odd:one")
        await agent.send("go")
        outcome = await agent.settled()
        said = logged(agent, "assistant/message")[0]
        assert said["text"] == "a\\ud800b"
        assert [call["id"] for call in said["tool_calls"]] == ["same", "same-1", "call-1"]
        assert [call["arguments"] for call in said["tool_calls"]] == [
            '{"text": NaN}',
            '{"text": 1152921504606846976}',
            "{not json",
        ]
        results = logged(agent, "tool/result")
        assert [data["call_id"] for data in results] == ["same", "same-1", "call-1"]
        assert all(data["is_error"] for data in results)
        assert "not a JSON object" in results[0]["text"]
    assert outcome.outcome == "completed"


async def test_an_answer_that_never_settles_is_a_failure(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(adapters=[OddModels()]) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="odd:unsettled")
        await agent.send("go")
        outcome = await agent.settled()
        assert logged(agent, "assistant/message")[0]["finish"] == "interrupted"
    assert isinstance(outcome.error, ModelFailed)
