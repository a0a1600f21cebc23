from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from heald import Cancelled, CompositionError, Row
from heald.testing import HostFactory
from heald_agent import AgentAbsent, AgentBusy, ModelFailed, ModelNotConfigured, agents
from heald_commands import CommandUnknown, command_directory
from heald_compaction import (
    CompactionFailed,
    CompactionNotNeeded,
    CompactionStarted,
    SummaryUnusable,
)
from heald_compaction.summary import HEADING, PROMPT
from heald_models_scripted import Call, Reply
from heald_projection import projections
from heald_session import (
    APPEND,
    AssistantMessage,
    Event,
    HistorySummary,
    Message,
    Session,
    Surface,
    ToolResult,
    UserMessage,
    session_store,
)

OpenDesk = Callable[..., AbstractAsyncContextManager[Any]]

LONG = "a long story " * 20


def events(session: Session, *types: str) -> list[Event]:
    return [event for event in session.hot() if event.type in types]


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages]


def summaries(session: Session) -> list[Event]:
    return events(session, "history/summary")


async def test_a_summary_takes_the_place_of_what_was_said_and_cites_it(desk: OpenDesk) -> None:
    async with desk() as at:
        agent = await at.agent()
        await at.say(agent, LONG + "1", LONG + "2")
        before = agent.session.history()
        replaced = [e.seq for e in events(agent.session, "user/message", "assistant/message")]
        output = await at.compact(agent)
        (event,) = summaries(agent.session)
        summary = event.data_as(HistorySummary)
        assert summary.text == f"{HEADING}\nThey counted."
        assert agent.session.history() == (UserMessage(summary.id, summary.text),)
        assert event.surface == Surface("replace", replaced[0], replaced[-1])
        assert event.sources == tuple(replaced)
        size = sum(map(len, texts(before)))
        assert output == (
            f"The model now reads a summary of {len(summary.text)} characters in the place of "
            f"4 messages of {size:,}. The log has them all."
        )
        assert agent.session.flushed == agent.session.end


async def test_the_conversation_goes_on_after_the_summary(desk: OpenDesk) -> None:
    async with desk() as at:
        agent = await at.agent()
        await at.say(agent, LONG)
        await at.compact(agent)
        await at.say(agent, "go on")
        (summary,) = summaries(agent.session)
        assert texts(at.sent[-1].messages) == [summary.data["text"], "go on"]
        assert at.sent[-1].tools == at.sent[0].tools
        assert at.sent[-1].system == at.sent[0].system


async def test_the_model_is_asked_with_the_context_it_had_and_no_turn_is_opened(
    desk: OpenDesk,
) -> None:
    async with desk() as at:
        agent = await at.agent()
        await at.say(agent, LONG)
        heard = len(at.heard)
        turns = len(events(agent.session, "turn/start", "step/start", "assistant/message"))
        await at.compact(agent, "the  names\nof files")
        (turn, asked) = at.sent
        assert (asked.system, asked.tools) == (turn.system, turn.tools)
        (answer,) = events(agent.session, "assistant/message")
        assert asked.messages[:-1] == (*turn.messages, answer.data_as(AssistantMessage))
        assert asked.messages[-1].text == (
            f"{PROMPT}\n\nAbove all, keep this: the  names\nof files"
        )
        assert len(events(agent.session, "turn/start", "step/start", "assistant/message")) == turns
        assert at.heard[heard:] == []


async def test_what_the_request_came_to_is_in_the_log(desk: OpenDesk) -> None:
    async with desk() as at:
        agent = await at.agent()
        await at.say(agent, LONG)
        await at.compact(agent)
        (summary,) = summaries(agent.session)
        usage = summary.data_as(HistorySummary).usage
        assert usage is not None
        assert usage.input_tokens > len(LONG) // 4
        assert usage.output_tokens == len("They counted.") // 4


async def test_the_newest_messages_stay_as_they_are(desk: OpenDesk) -> None:
    async with desk(keep=200) as at:
        agent = await at.agent()
        await at.say(agent, LONG, "short 1", "call /compact", "short 2")
        before = texts(agent.session.history())
        output = await at.compact(agent)
        after = texts(agent.session.history())
        assert after[1:] == before[2:]
        assert output.endswith("; the 8 newest stay as they are. The log has them all.")
        assert at.sent[-1].messages[0].text == LONG  # and the model is asked of nothing else
        assert len(at.sent[-1].messages) == 3


async def test_a_second_summary_is_made_of_the_first_and_what_followed_it(desk: OpenDesk) -> None:
    async with desk() as at:
        agent = await at.agent()
        await at.say(agent, LONG)
        await at.compact(agent)
        await at.say(agent, LONG + "again")
        at.summary = Reply(text="They counted and told it again.")
        await at.compact(agent)
        first, second = summaries(agent.session)
        followed = events(agent.session, "user/message", "assistant/message")[2:]
        assert second.sources == (first.seq, *(event.seq for event in followed))
        assert second.surface == Surface("replace", first.seq, followed[-1].seq)
        assert texts(at.sent[-1].messages)[0] == first.data["text"]
        assert LONG not in texts(at.sent[-1].messages)
        assert texts(agent.session.history()) == [f"{HEADING}\n{at.summary.text}"]
        assert first.data["text"] not in second.data["text"]


async def test_people_still_read_everything(desk: OpenDesk) -> None:
    async with desk() as at:
        agent = await at.agent()
        await at.say(agent, LONG + "1")
        await at.compact(agent)
        said = [event.data["text"] async for event in agent.session.read() if "text" in event.data]
        assert LONG + "1" in said
        assert f"answer to {LONG}1" in said
        assert summaries(agent.session)[0].data["text"] in said


async def test_in_a_tool_it_is_refused_and_changes_nothing(desk: OpenDesk) -> None:
    async with desk() as at:
        agent = await at.agent()
        await at.say(agent, LONG, "call /compact")
        (result,) = (m for m in agent.session.history() if isinstance(m, ToolResult))
        assert result.is_error
        assert result.text.startswith("AGENT_BUSY: ")
        assert events(agent.session, "compaction/started", "history/summary") == []


@pytest.mark.parametrize("prompts", [[], ["hello"], [LONG]])
async def test_where_there_is_too_little_it_is_refused_and_the_session_stays_blank(
    desk: OpenDesk, prompts: list[str]
) -> None:
    async with desk(keep=1000) as at:
        agent = await at.agent()
        await at.say(agent, *prompts)
        asked = len(at.sent)
        with pytest.raises(CompactionNotNeeded, match=r"too little .* up to 1,000 characters"):
            await at.compact(agent)
        assert len(at.sent) == asked
        assert len(events(agent.session, "turn/start")) == len(prompts)
        assert events(agent.session, "compaction/started") == []


async def test_a_summary_alone_is_not_summed_up(desk: OpenDesk) -> None:
    async with desk() as at:
        agent = await at.agent()
        await at.say(agent, LONG)
        await at.compact(agent)
        with pytest.raises(CompactionNotNeeded):
            await at.compact(agent)
        assert len(summaries(agent.session)) == 1


@pytest.mark.parametrize(
    ("reply", "error", "reason"),
    [
        (Reply(failure="server"), ModelFailed, "server"),
        (Reply(text="half", failure="timeout"), ModelFailed, "timeout"),
        (Reply(text=" \n"), SummaryUnusable, "its answer is empty"),
        (Reply(calls=(Call(tool="command"),)), SummaryUnusable, "it called a tool instead"),
        (Reply(text=LONG * 3), SummaryUnusable, "no shorter than what it would replace"),
    ],
)
async def test_a_failure_changes_nothing_that_the_model_sees_and_says_why(
    desk: OpenDesk, reply: Reply, error: type[Exception], reason: str
) -> None:
    async with desk() as at:
        agent = await at.agent()
        await at.say(agent, LONG)
        before = agent.session.history()
        at.summary = reply
        with pytest.raises(error, match=reason):
            await at.compact(agent)
        assert agent.session.history() == before
        started, failed, ran = agent.session.hot()[-3:]
        told = failed.data_as(CompactionFailed)
        assert told.id == started.data_as(CompactionStarted).id
        assert reason in told.reason
        assert (told.usage is not None) is (error is SummaryUnusable)
        assert ran.data["is_error"]
        at.summary = Reply(text="They counted.")
        await at.compact(agent)
        await at.say(agent, "go on")


async def test_it_is_cancelled_with_the_agent_or_its_caller(desk: OpenDesk) -> None:
    async with desk() as at:
        agent = await at.agent()
        await at.say(agent, LONG)
        before = agent.session.history()
        at.gate.clear()
        asked = asyncio.create_task(at.compact(agent))
        await at.waiting.wait()
        agent.cancel("the person said so")
        with pytest.raises(Cancelled, match="the person said so"):
            await asked
        at.waiting.clear()
        asked = asyncio.create_task(at.compact(agent))
        await at.waiting.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert agent.session.history() == before
        reasons = [e.data["reason"] for e in events(agent.session, "compaction/failed")]
        assert "the person said so" in reasons[0]
        assert reasons[1:] == ["CancelledError"]
        await at.say(agent, "go on")


async def test_disposing_of_the_agent_ends_it(desk: OpenDesk) -> None:
    async with desk() as at:
        agent = await at.agent()
        await at.say(agent, LONG)
        at.gate.clear()
        asked = asyncio.create_task(at.compact(agent))
        await at.waiting.wait()
        await agent.dispose()
        with pytest.raises(Cancelled, match="disposed of"):
            await asked
        assert [e.type for e in agent.session.hot()[-2:]] == ["compaction/failed", "command/ran"]


async def test_a_message_that_arrives_meanwhile_is_accepted_and_delivered_after_it(
    desk: OpenDesk,
) -> None:
    async with desk() as at:
        agent = await at.agent()
        await at.say(agent, LONG)
        at.gate.clear()
        asked = asyncio.create_task(at.compact(agent))
        await at.waiting.wait()
        await agent.send("and now?")
        with pytest.raises(AgentBusy):
            await at.compact(agent)
        at.gate.set()
        outcome = await agent.settled()
        assert asked.done()
        assert outcome.text == "answer to and now?"
        (summary,) = summaries(agent.session)
        assert texts(agent.session.history()) == [
            summary.data["text"],
            "and now?",
            "answer to and now?",
        ]


async def test_without_an_agent_or_a_model_there_is_nobody_to_ask(desk: OpenDesk) -> None:
    async with desk() as at:
        agent = await at.agent()
        composition = agent.session.scope.composition
        store = at.host.scope.require(session_store)
        bare = await store.create(cwd=None, composition=composition)
        bare.append("user/message", UserMessage("m", LONG), surface=APPEND)
        bare.append("assistant/message", AssistantMessage(LONG), surface=APPEND)
        directory = bare.scope.require(command_directory)
        with pytest.raises(AgentAbsent):
            await directory.run(bare, "/compact")
        await at.host.scope.require(agents).attach(bare)
        with pytest.raises(ModelNotConfigured):
            await directory.run(bare, "/compact")
        assert events(bare, "compaction/started") == []
        await store.dispose(bare)


async def test_the_command_is_only_where_its_row_is(desk: OpenDesk) -> None:
    async with desk() as at:
        agent = await at.agent("plain")
        await at.say(agent, LONG)
        with pytest.raises(CommandUnknown):
            await at.compact(agent)


async def test_state_that_rows_keep_is_not_touched(desk: OpenDesk) -> None:
    async with desk(rows=["plan"]) as at:
        agent = await at.agent()
        await at.command(agent, "/plan on")
        await at.say(agent, LONG)
        await at.compact(agent)
        await at.say(agent, "go on")
        values = (
            at.host.scope.require(projections).snapshot(agent.session, ["plan", "title"]).values
        )
        assert values["plan"] == {"active": True}
        assert values["title"]["text"].startswith("a long story")
        assert "Plan mode is on" in at.sent[-1].system


async def test_a_preset_says_what_is_asked_for(desk: OpenDesk) -> None:
    async with desk(prompt="It will be replaced by a summary. In verse.") as at:
        agent = await at.agent()
        await at.say(agent, LONG)
        await at.compact(agent)
        assert at.sent[-1].messages[-1].text == "It will be replaced by a summary. In verse."


@pytest.mark.parametrize(
    ("config", "message"),
    [({"keep_chars": -1}, "0 or more"), ({"prompt": " "}, "what is asked for")],
)
async def test_a_wrong_configuration_is_refused(
    heald_host: HostFactory, config: dict[str, object], message: str
) -> None:
    rows = [Row("session", "session"), Row("agent", "agent"), Row("c", "compaction", config)]
    with pytest.raises(CompositionError, match=message):
        async with heald_host(rows=rows):
            pass
