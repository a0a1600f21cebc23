"""Running children: how they come to be, how they end, and who hears of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from heald import Cancelled, CancelToken, HealdError, Row
from heald_agent import Agent, ModelUnknown
from heald_models_scripted import Call, Conversation, Reply, Script, steps
from heald_preset import PresetNotFound, presets
from heald_query import session_query
from heald_session import (
    AppendGuard,
    AppendRefused,
    Proposal,
    SessionId,
    SessionNotFound,
    UserMessage,
)
from heald_subagent import (
    ChildResult,
    ChildRow,
    Delegation,
    DelegationInvalid,
    SubagentLimit,
    SubagentNotContinuable,
    SubagentNotLive,
    SubagentUnauthorized,
)

if TYPE_CHECKING:
    from tests.plugins.subagent.conftest import Crew, OpenCrew


@attrs.define
class Gate:
    """A script whose answers wait until the test lets them go."""

    name: str = "gated"
    text: str = "done"
    arrived: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(0))
    open: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(0))

    @property
    def script(self) -> Script:
        return Script(self.name, self._play)

    async def _play(self, conversation: Conversation) -> Reply:
        self.arrived.release()
        await self.open.acquire()
        return Reply(text=f"{self.text}: {conversation.prompt}")


def task(text: str = "count", label: str | None = "helper", **more: Any) -> Delegation:
    return Delegation(task=text, label=label, **more)


def gated(text: str = "count", **more: Any) -> Delegation:
    return task(text, model="scripted:gated", **more)


def told(agent: Agent) -> list[UserMessage]:
    """Return what other sessions sent to an agent, in the order it was accepted."""
    accepted = [e for e in agent.session.hot() if e.type == "inbox/message"]
    return [m for e in accepted if (m := UserMessage(**plain(e.data))).sender is not None]


def plain(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "lane"}


async def turn_over(agent: Agent) -> None:
    """Let what was scheduled by now be accepted, then wait until the agent has settled."""
    for _ in range(20):
        await asyncio.sleep(0)
    await agent.settled()


# One-shot children


async def test_a_one_shot_child_returns_its_closing_message_and_is_disposed_of(
    open_crew: OpenCrew,
) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        result = await crew.service.run_one_shot(parent, task("hello", label=None))
        assert (result.outcome, result.text) == ("completed", "hello")
        assert crew.store.get(result.id) is None
        assert crew.agents.get(result.id) is None
        assert await crew.children() == [
            ChildRow(id=result.id, activity="inactive", has_children=False, mode="one-shot")
        ]


async def test_a_child_is_published_with_its_descriptor_and_task_stored_already(
    open_crew: OpenCrew,
) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        result = await crew.service.run_one_shot(parent, task())
        other = await crew.service.start(parent, task())
        first = (["subagent/descriptor", "inbox/message"], 2)
        assert crew.spies.opened[result.id] == crew.spies.opened[other] == first


async def test_a_child_is_an_ordinary_session_that_says_whose_it_is(open_crew: OpenCrew) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, task())
        session = crew.store.get(child)
        assert session is not None
        header = session.header
        assert (header.origin, header.parent_session, header.delegation_depth) == (
            "subagent",
            "parent",
            1,
        )
        assert (header.cwd, header.is_seeded) == ("/", False)
        assert session.hot()[0].data == {
            "version": 2,
            "mode": "continuable",
            "provider": "spawn",
            "label": "helper",
            "agent_provider": "scripted",
            "model": "echo",
        }


async def test_children_that_ran_and_ended_are_listed_without_reading_a_log(
    open_crew: OpenCrew,
) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        errand = await crew.service.run_one_shot(parent, task())
        child = await crew.service.start(parent, task(label="reader"))
        await crew.service.wait(parent)
        await parent.dispose()
        rows = {row.id: (row.activity, row.mode, row.label) for row in await crew.children()}
        assert rows == {
            errand.id: ("inactive", "one-shot", "helper"),
            child: ("inactive", "continuable", "reader"),
        }
        assert crew.spies.observed == []


async def test_closing_the_host_ends_children_at_work_without_a_word(
    open_crew: OpenCrew, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    async with open_crew(gate.script) as crew:
        parent = await crew.agent()
        child = crew.agents.get(await crew.service.start(parent, gated()))
        assert child is not None
        await crew.service.start(child, gated())
        for _ in range(2):
            await gate.arrived.acquire()
    assert [record.getMessage() for record in caplog.records] == []
    async with open_crew(gate.script) as crew:
        assert [row.activity for row in await crew.descendants()] == ["inactive"] * 2


async def test_a_one_shot_child_that_fails_says_why(open_crew: OpenCrew) -> None:
    script = steps("fails", [Reply(text="I tried", failure="server")])
    async with open_crew(script) as crew:
        parent = await crew.agent()
        result = await crew.service.run_one_shot(parent, task(model="scripted:fails"))
        assert result.outcome == "failed"
        assert "MODEL_FAILED" in result.text
        assert crew.store.get(result.id) is None


async def test_a_one_shot_child_whose_caller_cancels_is_aborted_and_disposed_of(
    open_crew: OpenCrew,
) -> None:
    gate = Gate()
    async with open_crew(gate.script) as crew:
        parent = await crew.agent()
        token = CancelToken()
        running = asyncio.create_task(crew.service.run_one_shot(parent, gated(), cancel=token))
        await gate.arrived.acquire()
        token.cancel("not wanted any more")
        result = await running
        assert (result.outcome, result.text) == ("aborted", "not wanted any more")
        assert crew.store.live() == (parent.session,)


async def test_a_one_shot_child_is_disposed_of_when_its_callers_task_is_cancelled(
    open_crew: OpenCrew,
) -> None:
    gate = Gate()
    async with open_crew(gate.script) as crew:
        parent = await crew.agent()
        running = asyncio.create_task(crew.service.run_one_shot(parent, gated()))
        await gate.arrived.acquire()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert crew.store.live() == (parent.session,)


async def test_a_token_that_is_cancelled_already_makes_no_child(open_crew: OpenCrew) -> None:
    token = CancelToken()
    token.cancel()
    async with open_crew() as crew:
        parent = await crew.agent()
        with pytest.raises(Cancelled):
            await crew.service.run_one_shot(parent, task(), cancel=token)
        assert await crew.children() == []


# Refusals that leave nothing behind


async def nothing_was_made(crew: Crew) -> None:
    assert await crew.children() == []
    assert [s.id for s in crew.store.live()] == ["parent"]
    names = [path.name for path in (crew.host.home / "sessions").glob("*")]
    assert [name for name in names if name != "parent"] == []


async def test_a_child_on_an_unknown_model_is_refused_and_leaves_nothing(
    open_crew: OpenCrew,
) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        for delegation in (task(model="nobody:x"), task(model="scripted")):
            with pytest.raises(ModelUnknown):
                await crew.service.start(parent, delegation)
            with pytest.raises(ModelUnknown):
                await crew.service.run_one_shot(parent, delegation)
        await nothing_was_made(crew)


async def test_a_child_on_an_unknown_preset_is_refused_and_leaves_nothing(
    open_crew: OpenCrew,
) -> None:
    async with open_crew(rows=[Row("preset", "preset")]) as crew:
        parent = await crew.agent()
        with pytest.raises(PresetNotFound):
            await crew.service.start(parent, task(preset="nothing"))
        await nothing_was_made(crew)


@pytest.mark.parametrize("type_", ["subagent/descriptor", "inbox/message"])
async def test_a_child_whose_first_events_are_vetoed_leaves_nothing(
    open_crew: OpenCrew, type_: str
) -> None:
    def veto(proposal: Proposal) -> None:
        if proposal.event.type == type_:
            raise ValueError("no")

    async with open_crew(guards=[AppendGuard(veto)]) as crew:
        parent = await crew.agent()
        with pytest.raises(AppendRefused):
            await crew.service.start(parent, task())
        await nothing_was_made(crew)


async def test_a_continuable_child_needs_a_label(open_crew: OpenCrew) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        with pytest.raises(DelegationInvalid, match="label"):
            await crew.service.start(parent, task(label=None))
        await nothing_was_made(crew)


async def test_a_delegation_too_large_for_a_descriptor_is_refused(open_crew: OpenCrew) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        with pytest.raises(DelegationInvalid, match="65536"):
            await crew.service.start(parent, task(persona="x" * 70_000))
        await nothing_was_made(crew)


async def test_the_depth_limit_is_told_with_what_to_do(open_crew: OpenCrew) -> None:
    async with open_crew(subagent={"max_depth": 1}) as crew:
        parent = await crew.agent()
        child = crew.agents.get(await crew.service.start(parent, task()))
        assert child is not None
        with pytest.raises(SubagentLimit, match="do the work here") as caught:
            await crew.service.start(child, task())
        assert (caught.value.limit, caught.value.allowed) == ("depth", 1)
        assert caught.value.blocking == (child.session.id,)
        with pytest.raises(SubagentLimit):
            await crew.service.run_one_shot(child, task())


async def test_the_breadth_limit_names_who_is_in_the_way_and_those_that_settled_do_not_count(
    open_crew: OpenCrew,
) -> None:
    gate = Gate()
    async with open_crew(gate.script, subagent={"max_children": 2}) as crew:
        parent = await crew.agent()
        done = await crew.service.start(parent, task())
        await crew.service.wait(parent, [done])
        one = await crew.service.start(parent, gated())
        errand = asyncio.create_task(crew.service.run_one_shot(parent, gated()))
        for _ in range(2):
            await gate.arrived.acquire()
        for attempt in (
            crew.service.start(parent, gated()),
            crew.service.run_one_shot(parent, gated()),
            crew.service.send(parent, done, "more"),
        ):
            with pytest.raises(SubagentLimit, match="wait for one of them") as caught:
                await attempt
            assert caught.value.limit == "breadth"
            assert one in caught.value.blocking
            assert len(caught.value.blocking) == 2
        await crew.service.send(parent, one, "this one works already")
        for _ in range(3):
            gate.open.release()
        await errand
        await crew.service.wait(parent)
        await crew.service.start(parent, task())


# Settling


async def test_a_child_that_settles_while_its_parent_rests_is_reported_by_one_message(
    open_crew: OpenCrew,
) -> None:
    gate = Gate()
    async with open_crew(gate.script) as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, gated("count"))
        await gate.arrived.acquire()
        assert told(parent) == []
        gate.open.release()
        agent = crew.agents.get(child)
        assert agent is not None
        await agent.settled()
        await turn_over(parent)
        (message,) = told(parent)
        assert message.sender == child
        assert message.text == f"Subagent 'helper' ({child}) completed:\n\ndone: count"
        assert [m.text for m in parent.session.history()][:1] == [message.text]


async def test_a_settlement_that_a_wait_returned_is_not_reported_again(
    open_crew: OpenCrew,
) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, task("hello"))
        results = await crew.service.wait(parent, [child])
        assert results == [ChildResult(id=child, outcome="completed", text="hello")]
        await turn_over(parent)
        assert told(parent) == []
        assert await crew.service.wait(parent) == results


def boss(gate: asyncio.Event, *, waits: bool) -> Script:
    """Start a child, go on when the gate is open, and then call `wait_agents` or not."""
    start = Call(
        tool="subagent", arguments={"task": "hello", "label": "helper", "mode": "continuable"}
    )

    async def play(conversation: Conversation) -> Reply:
        if conversation.prompt != "go":
            return Reply(text=conversation.prompt)
        if conversation.step == 0:
            return Reply(calls=(start,))
        await gate.wait()
        wanted = conversation.step == 1 and waits
        return Reply(text="ok", calls=(Call(tool="wait_agents"),) if wanted else ())

    return Script("boss", play)


@pytest.mark.parametrize("waits", [True, False])
async def test_a_child_that_settles_inside_its_parents_turn_is_reported_after_it_unless_waited_for(
    open_crew: OpenCrew,
    waits: bool,  # noqa: FBT001
) -> None:
    gate = asyncio.Event()
    async with open_crew(boss(gate, waits=waits)) as crew:
        parent = await crew.agent(model="boss")
        opened = crew.spies.published
        await parent.send("go")
        await opened.acquire()
        await opened.acquire()
        (child,) = (s.id for s in crew.store.live() if s is not parent.session)
        await asyncio.sleep(0)  # it is published, and gets its agent in the same step
        agent = crew.agents.get(child)
        assert agent is not None
        await turn_over(agent)
        assert told(parent) == []
        gate.set()
        await parent.settled()
        await turn_over(parent)
        assert len(told(parent)) == (0 if waits else 1)
        events = [e.type for e in parent.session.hot() if e.type in ("turn/end", "inbox/message")]
        expected = ["inbox/message", "turn/end"]
        assert events == expected + ([] if waits else expected)


async def test_a_wait_that_gives_up_says_running_and_the_settlement_is_reported_later(
    open_crew: OpenCrew,
) -> None:
    gate = Gate()
    async with open_crew(gate.script) as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, gated())
        await gate.arrived.acquire()
        (result,) = await crew.service.wait(parent, timeout=0)
        assert (result.id, result.outcome) == (child, "running")
        gate.open.release()
        agent = crew.agents.get(child)
        assert agent is not None
        await agent.settled()
        await turn_over(parent)
        assert [m.sender for m in told(parent)] == [child]


async def test_a_wait_that_is_cancelled_loses_no_settlement(open_crew: OpenCrew) -> None:
    gate = Gate()
    async with open_crew(gate.script) as crew:
        parent = await crew.agent()
        token = CancelToken()
        children = [await crew.service.start(parent, gated(label=x)) for x in "ab"]
        waiting = asyncio.create_task(crew.service.wait(parent, cancel=token))
        for _ in children:
            await gate.arrived.acquire()
        gate.open.release()
        agents = [crew.agents.get(child) for child in children]
        await asyncio.wait(
            [asyncio.create_task(a.settled()) for a in agents if a is not None],
            return_when=asyncio.FIRST_COMPLETED,
        )
        assert told(parent) == []
        token.cancel()
        with pytest.raises(Cancelled):
            await waiting
        await turn_over(parent)
        assert len(told(parent)) == 1
        gate.open.release()
        await crew.service.wait(parent)
        await turn_over(parent)
        assert len(told(parent)) == 1


async def test_a_child_that_its_own_child_wakes_is_reported_again(open_crew: OpenCrew) -> None:
    gate = Gate()
    async with open_crew(gate.script) as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, task("first"))
        await crew.service.wait(parent)
        agent = crew.agents.get(child)
        assert agent is not None
        grandchild = await crew.service.start(agent, gated("deep", label="deep"))
        await gate.arrived.acquire()
        gate.open.release()
        deep = crew.agents.get(grandchild)
        assert deep is not None
        await deep.settled()
        await turn_over(agent)
        await turn_over(parent)
        (message,) = told(parent)
        assert message.sender == child
        assert "done: deep" in message.text


async def test_a_long_closing_message_is_quoted_in_part_and_returned_whole(
    open_crew: OpenCrew,
) -> None:
    async with open_crew(steps("long", [Reply(text="x" * 50_000)])) as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, task(model="scripted:long"))
        agent = crew.agents.get(child)
        assert agent is not None
        await agent.settled()
        await turn_over(parent)
        (message,) = told(parent)
        assert len(message.text) < 5_000
        assert "46000 more characters" in message.text
        (result,) = await crew.service.wait(parent)
        assert len(result.text) == 50_000


# Talking to children


async def test_a_child_that_settled_goes_on_with_a_message(open_crew: OpenCrew) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, task("one"))
        await crew.service.wait(parent)
        await crew.service.send(parent, child, "two")
        (result,) = await crew.service.wait(parent, [child])
        assert result.text == "two"
        await turn_over(parent)
        assert told(parent) == []


async def test_a_message_to_a_child_at_work_is_part_of_the_same_run(open_crew: OpenCrew) -> None:
    gate = Gate()
    async with open_crew(gate.script) as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, gated("one"))
        await gate.arrived.acquire()
        waiting = asyncio.create_task(crew.service.wait(parent, [child]))
        await crew.service.send(parent, child, "two")
        gate.open.release()
        gate.open.release()
        assert await waiting == [ChildResult(id=child, outcome="completed", text="done: two")]
        await turn_over(parent)
        assert told(parent) == []


async def test_a_cold_child_is_resumed_on_the_terms_of_its_descriptor(
    open_crew: OpenCrew,
) -> None:
    def persona(conversation: Conversation) -> Reply:
        return Reply(text=f"{conversation.request.system}/{conversation.prompt}")

    script = Script("persona", persona)
    delegation = task(
        model="scripted:persona", persona="Be brief.", denied_tools=frozenset({"subagent"})
    )
    async with open_crew(script) as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, delegation)
        await crew.service.wait(parent)
    async with open_crew(script) as crew:
        parent = await crew.agent(denied_tools=frozenset({"wait_agents"}))
        assert [row.activity for row in await crew.children()] == ["inactive"]
        await crew.service.send(parent, child, "again")
        (result,) = await crew.service.wait(parent, [child])
        assert result == ChildResult(id=child, outcome="completed", text="Be brief./again")
        agent = crew.agents.get(child)
        assert agent is not None
        assert agent.denied_tools == {"subagent", "wait_agents"}
        assert agent.model == "scripted:persona"
        assert [row.activity for row in await crew.children()] == ["running"]
        await turn_over(parent)
        assert told(parent) == []


async def test_two_messages_to_a_cold_child_bring_it_back_once(open_crew: OpenCrew) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, task())
        await crew.service.wait(parent)
    async with open_crew() as crew:
        parent = await crew.agent()
        send = crew.service.send
        await asyncio.gather(*(send(parent, child, text) for text in ("one", "two")))
        (result,) = await crew.service.wait(parent)
        assert result.outcome == "completed"
        agent = crew.agents.get(child)
        assert agent is not None
        heard = [m.text for m in agent.session.history() if isinstance(m, UserMessage)]
        assert heard == ["count", "one", "two"]


async def test_a_childs_denials_include_its_parents(open_crew: OpenCrew) -> None:
    async with open_crew() as crew:
        parent = await crew.agent(denied_tools=frozenset({"subagent"}))
        child = await crew.service.start(parent, task(denied_tools=frozenset({"list_agents"})))
        agent = crew.agents.get(child)
        assert agent is not None
        assert agent.denied_tools == {"subagent", "list_agents"}


# Who may


async def refused(crew: Crew, caller: Agent, child: SessionId) -> None:
    with pytest.raises(SubagentUnauthorized) as caught:
        await crew.service.send(caller, child, "hello")
    assert caught.value.code == "SUBAGENT_UNAUTHORIZED"
    with pytest.raises(HealdError):
        await crew.service.wait(caller, [child])


async def test_nobody_but_the_live_parent_may_talk_to_a_child(open_crew: OpenCrew) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        stranger = await crew.agent("stranger")
        child = await crew.service.start(parent, task())
        sibling = crew.agents.get(await crew.service.start(parent, task()))
        assert sibling is not None
        await refused(crew, stranger, child)
        await refused(crew, sibling, child)
        await refused(crew, sibling, sibling.session.id)
        await crew.service.wait(parent)
        await parent.dispose()
        await refused(crew, parent, child)
        await refused(crew, stranger, child)
        again = await crew.agent()
        await refused(crew, parent, child)
        await crew.service.send(again, child, "hello")


@pytest.mark.parametrize("method", ["start", "run_one_shot"])
async def test_an_agent_that_ended_starts_no_child(open_crew: OpenCrew, method: str) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        await parent.dispose()
        with pytest.raises(SubagentUnauthorized):
            await getattr(crew.service, method)(parent, task())
        assert await crew.children() == []


async def test_what_is_no_continuable_child_cannot_be_sent_to(open_crew: OpenCrew) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        errand = await crew.service.run_one_shot(parent, task())
        with pytest.raises(SubagentNotContinuable, match="one-shot"):
            await crew.service.send(parent, errand.id, "hello")
        await crew.child("bare", live=False)
        with pytest.raises(SubagentNotContinuable, match="descriptor"):
            await crew.service.send(parent, SessionId("bare"), "hello")
        with pytest.raises(SessionNotFound):
            await crew.service.send(parent, SessionId("nobody"), "hello")
        ordinary = await crew.session("ordinary", parent="parent", live=False)
        with pytest.raises(SubagentUnauthorized):
            await crew.service.send(parent, ordinary.id, "hello")
        assert crew.store.live() == (parent.session,)


async def test_an_inherited_descriptor_does_not_make_a_child_continuable(
    open_crew: OpenCrew,
) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, task())
        await crew.service.wait(parent)
        await crew.fork(child, "forked", live=False)
        with pytest.raises(SubagentNotContinuable, match="of its own"):
            await crew.service.send(parent, SessionId("forked"), "hello")


async def test_a_child_that_is_not_live_cannot_be_waited_for(open_crew: OpenCrew) -> None:
    async with open_crew() as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, task())
        with pytest.raises(SubagentNotLive, match=child) as caught:
            await crew.service.wait(parent, [SessionId("nobody")])
        assert caught.value.live == (child,)
        assert await crew.service.wait(await crew.agent("other")) == []


# The end of parents


async def test_disposing_of_a_parent_ends_its_whole_tree(open_crew: OpenCrew) -> None:
    gate = Gate()
    async with open_crew(gate.script) as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, gated())
        agent = crew.agents.get(child)
        assert agent is not None
        await crew.service.start(agent, gated())
        errand = asyncio.create_task(crew.service.run_one_shot(agent, gated()))
        for _ in range(3):
            await gate.arrived.acquire()
        waiting = asyncio.create_task(crew.service.wait(parent))
        await asyncio.sleep(0)
        await parent.dispose()
        assert crew.store.live() == ()
        assert (await errand).outcome == "aborted"
        assert [result.outcome for result in await waiting] == ["aborted"]
        rows = await crew.descendants()
        assert [row.activity for row in rows] == ["inactive"] * 3
        for row in rows:
            async with crew.host.scope.require(session_query).observe_session(row.id) as seen:
                types = [e.type async for e in seen.events()]
            assert types[-1] == "turn/end"


async def test_cancelling_a_parents_turn_cancels_its_children_and_is_not_reported_to_it(
    open_crew: OpenCrew,
) -> None:
    gate, boss = Gate(), Gate("boss")
    async with open_crew(gate.script, boss.script) as crew:
        parent = await crew.agent(model="boss")
        await parent.send("go")
        await boss.arrived.acquire()
        child = await crew.service.start(parent, gated())
        await gate.arrived.acquire()
        parent.cancel("stop it")
        assert (await parent.settled()).outcome == "aborted"
        (result,) = await crew.service.wait(parent)
        assert (result.id, result.outcome) == (child, "aborted")
        assert "stop it" in result.text
        await turn_over(parent)
        assert told(parent) == []


async def test_a_cancelled_parent_takes_down_what_works_below_a_child_that_rests(
    open_crew: OpenCrew,
) -> None:
    gate, lead = Gate(), Gate("boss")
    async with open_crew(gate.script, lead.script) as crew:
        parent = await crew.agent(model="boss")
        await parent.send("go")
        await lead.arrived.acquire()
        child = crew.agents.get(await crew.service.start(parent, task(model="scripted:echo")))
        assert child is not None
        await crew.service.wait(parent)
        deep = crew.agents.get(await crew.service.start(child, gated()))
        assert deep is not None
        await gate.arrived.acquire()
        parent.cancel("stop it")
        assert (await deep.settled()).outcome == "aborted"
        await turn_over(child)
        assert [m.sender for m in told(child)] == ["parent"]


async def test_a_cancelled_child_that_is_sent_to_works_again_and_is_reported(
    open_crew: OpenCrew,
) -> None:
    gate, lead = Gate(), Gate("boss")
    async with open_crew(gate.script, lead.script) as crew:
        parent = await crew.agent(model="boss")
        await parent.send("go")
        await lead.arrived.acquire()
        child = await crew.service.start(parent, gated())
        await gate.arrived.acquire()
        parent.cancel("stop it")
        await parent.settled()
        await crew.service.send(parent, child, "do this instead")
        for _ in range(9):
            gate.open.release()
            lead.open.release()
        agent = crew.agents.get(child)
        assert agent is not None
        await turn_over(agent)
        await turn_over(parent)
        assert [m.text.partition("\n\n")[2] for m in told(parent)] == ["done: do this instead"]


async def test_a_child_that_somebody_disposes_of_ends_the_wait_for_it(
    open_crew: OpenCrew,
) -> None:
    gate = Gate()
    async with open_crew(gate.script) as crew:
        parent = await crew.agent()
        child = await crew.service.start(parent, gated())
        await gate.arrived.acquire()
        waiting = asyncio.create_task(crew.service.wait(parent))
        await asyncio.sleep(0)
        agent = crew.agents.get(child)
        assert agent is not None
        await agent.dispose()
        assert [result.outcome for result in await waiting] == ["aborted"]
        await crew.service.send(parent, child, "come back")
        gate.open.release()
        (result,) = await crew.service.wait(parent)
        assert result.text == "done: come back"


# Presets


async def test_a_child_joins_its_parents_very_composition_though_the_preset_was_edited(
    open_crew: OpenCrew,
) -> None:
    async with open_crew(rows=[Row("preset", "preset")]) as crew:
        preset = crew.host.home / "presets" / "mine" / "preset.toml"
        preset.parent.mkdir(parents=True)
        rows = '[[rows]]\nid = "p"\nplugin = "persona"\nconfig = {{ text = "{}" }}\n'
        preset.write_text(rows.format("first"))
        parent = await crew.agents.create(
            cwd=crew.host.home, preset="mine", model="scripted:echo", id=SessionId("parent")
        )
        preset.write_text(rows.format("second"))
        child = await crew.service.start(parent, task())
        newer = await crew.service.start(parent, task(preset="mine"))
        sessions = [crew.store.get(ident) for ident in (child, newer)]
        compositions = [s.scope.composition for s in sessions if s is not None]
        assert compositions[0] is parent.session.scope.composition
        assert compositions[1] is not parent.session.scope.composition
        assert [s.header.agent_preset for s in sessions if s is not None] == ["mine", "mine"]
        seat = await crew.host.scope.require(presets).seat_beside(parent.session)
        assert seat is not None
        await seat.release()
