from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald import RowsFailed
from heald_agent import Agent, agents
from heald_agent.testing import Person
from heald_commands import CommandUnknown, command_directory
from heald_models_scripted import Call
from heald_plan.projection import PLAN as FOLD
from heald_preset import PresetInvalid
from heald_query import session_query
from heald_session import Event, Seq

OpenDesk = Callable[..., AbstractAsyncContextManager[Any]]
PLAN = "1. Look.\n2. Mend."
READ = Call(tool="read", arguments={"path": "note.txt"})
WRITE = Call(tool="write", arguments={"path": "note.txt", "content": "changed"})
SHELL = Call(tool="shell", arguments={"command": "echo changed > note.txt"})
TODO = Call(tool="todo", arguments={"items": [{"text": "look", "status": "active"}]})
LEAVE = Call(tool="leave_plan", arguments={"plan": PLAN})


@pytest.fixture
def note(tmp_path: Path) -> Path:
    file = tmp_path / "work" / "note.txt"
    file.parent.mkdir()
    file.write_text("as it was\n")
    return file


def text_of(file: Path) -> str:
    return file.read_text()


async def command(agent: Agent, line: str) -> str:
    return await agent.session.scope.require(command_directory).run(agent.session, line)


def types_of(agent: Agent, kind: str) -> list[str]:
    return [event.type for event in agent.session.hot() if event.type.startswith(kind)]


def system(agent: Agent) -> str:
    context = agent.session.context()
    assert context is not None
    return context.system


async def test_a_person_turns_it_on_and_off_without_a_turn(desk: OpenDesk, note: Path) -> None:
    async with desk() as at:
        agent = await at.agent(note.parent)
        assert at.plan(agent) == {"active": False}
        assert await command(agent, "/plan on") == "Plan mode is on."
        assert await command(agent, "/plan on") == "Plan mode is on."
        assert at.plan(agent) == {"active": True}
        assert await command(agent, "/plan") == "Plan mode is off."
        assert await command(agent, "/plan") == "Plan mode is on."
        assert await command(agent, "/plan OFF") == "Plan mode is off."
        assert types_of(agent, "plan/") == [
            "plan/entered",
            "plan/left",
            "plan/entered",
            "plan/left",
        ]
        assert types_of(agent, "turn/") == []  # so the session is blank still
        with pytest.raises(ValueError, match="/plan on or /plan off"):
            await command(agent, "/plan perhaps")


async def test_while_it_is_on_nothing_is_changed_and_reading_goes_on(
    desk: OpenDesk, note: Path
) -> None:
    async with desk() as at:
        agent = await at.agent(note.parent)
        await command(agent, "/plan on")
        results = await at.results(agent, READ, WRITE, SHELL, TODO)
        assert [(r.name, r.is_error) for r in results] == [
            ("read", False),
            ("write", True),
            ("shell", True),
            ("todo", False),
        ]
        assert "plan mode is on" in results[1].text
        assert "leave_plan" in results[1].text
        assert text_of(note) == "as it was\n"
        assert "Plan mode is on" in system(agent)
        await command(agent, "/plan off")
        (result,) = await at.results(agent, WRITE)
        assert not result.is_error
        assert text_of(note) == "changed"
        assert "Plan mode" not in system(agent)


async def test_it_is_left_with_an_approved_plan_and_the_work_goes_on_in_the_same_turn(
    desk: OpenDesk, note: Path
) -> None:
    async with desk() as at:
        agent = await at.agent(note.parent)
        await command(agent, "/plan on")
        running = asyncio.create_task(at.results(agent, LEAVE, WRITE))
        asked = await at.person.asked()
        assert asked.kind == "approval"
        assert PLAN in asked.text
        assert asked.action == {"tool": "leave_plan", "arguments": {"plan": PLAN}}
        await at.person.answer("approved", "mind the dog")
        left, write = await running
        assert "carry the plan out. The person remarked: mind the dog" in left.text
        assert not write.is_error
        assert text_of(note) == "changed"
        assert at.plan(agent) == {"active": False, "plan": PLAN}


@pytest.mark.parametrize("remark", [None, "first ask the owner"])
async def test_it_stays_on_when_the_plan_is_denied(
    desk: OpenDesk, note: Path, remark: str | None
) -> None:
    async with desk() as at:
        agent = await at.agent(note.parent)
        await command(agent, "/plan on")
        running = asyncio.create_task(at.results(agent, LEAVE, WRITE))
        await at.person.answer("denied", remark)
        left, write = await running
        assert left.is_error
        assert (remark or "the person declined") in left.text
        assert write.is_error
        assert at.plan(agent) == {"active": True}
        assert text_of(note) == "as it was\n"


async def test_it_stays_on_when_nobody_is_there_to_approve(desk: OpenDesk, note: Path) -> None:
    async with desk(Person(there=False)) as at:
        agent = await at.agent(note.parent)
        await command(agent, "/plan on")
        (left,) = await at.results(agent, LEAVE)
        assert left.is_error
        assert "nobody is there to answer" in left.text
        assert at.plan(agent) == {"active": True}


async def test_where_it_is_off_there_is_nothing_to_leave_and_nobody_is_asked(
    desk: OpenDesk, note: Path
) -> None:
    async with desk() as at:
        agent = await at.agent(note.parent)
        (left,) = await at.results(agent, LEAVE)
        assert left.is_error
        assert "not on" in left.text
        assert types_of(agent, "ask/") == []


async def test_turned_off_by_the_person_while_the_plan_waits_the_approval_adds_nothing(
    desk: OpenDesk, note: Path
) -> None:
    async with desk() as at:
        agent = await at.agent(note.parent)
        await command(agent, "/plan on")
        running = asyncio.create_task(at.results(agent, LEAVE))
        await at.person.asked()
        await command(agent, "/plan off")
        await at.person.answer("approved")
        await running
        assert types_of(agent, "plan/") == ["plan/entered", "plan/left"]


async def test_a_preset_without_it_does_not_act_on_what_the_log_says(
    desk: OpenDesk, note: Path
) -> None:
    async with desk() as at:
        agent = await at.agent(note.parent, "plain")
        agent.session.append("plan/entered", {})
        (result,) = await at.results(agent, WRITE)
        assert not result.is_error
        assert "Plan mode" not in system(agent)
        assert at.plan(agent) == {"active": True}  # what the log means depends on no row
        with pytest.raises(CommandUnknown):
            await command(agent, "/plan off")


async def test_two_agents_on_one_preset_are_in_it_apart(desk: OpenDesk, note: Path) -> None:
    async with desk() as at:
        one, two = await at.agent(note.parent), await at.agent(note.parent)
        await command(one, "/plan on")
        assert [at.plan(a) for a in (one, two)] == [{"active": True}, {"active": False}]
        (result,) = await at.results(two, WRITE)
        assert not result.is_error


async def test_it_holds_across_a_restart_and_is_read_cold(desk: OpenDesk, note: Path) -> None:
    async with desk() as at:
        agent = await at.agent(note.parent)
        id_ = agent.session.id
        await command(agent, "/plan on")
    async with desk() as at:
        query = at.host.scope.require(session_query)
        async with query.observe_session(id_, ["plan"]) as seen:
            assert seen.projections.values["plan"] == {"active": True}
        agent = await at.host.scope.require(agents).resume(id_)
        (result,) = await at.results(agent, WRITE)
        assert result.is_error


async def test_without_projections_the_preset_is_refused(desk: OpenDesk, note: Path) -> None:
    async with desk(without=("projection", "query")) as at:
        with pytest.raises((PresetInvalid, RowsFailed), match="projections"):
            await at.agent(note.parent)


EVENTS: Any = st.tuples(
    st.sampled_from(["plan/entered", "plan/left"]),
    st.sampled_from([{}, {"plan": "x"}, {"plan": 3}, {"more": 1}, None, [], "x"]),
)


@given(events=st.lists(EVENTS, max_size=8))
def test_whatever_a_log_holds_the_last_event_decides(events: Any) -> None:
    state: Any = {"active": False}
    for seq, (kind, data) in enumerate(events):
        event = Event(Seq(seq), kind, 1, msgspec.Raw(msgspec.json.encode(data)))
        state = FOLD.apply(state, event)
        assert state["active"] is (kind == "plan/entered")
        approved = kind == "plan/left" and data == {"plan": "x"}
        assert state.get("plan") == ("x" if approved else None)
        msgspec.convert(state, FOLD.state_schema)
