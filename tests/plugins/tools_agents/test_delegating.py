"""What a model gets when it delegates, talks to subagents, waits for them and lists them."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import heald_tools_agents
from heald import CancelToken, CompositionError, Row
from heald.testing import HostFactory
from heald_models_scripted import Call, Conversation, Reply, Script
from heald_session import SessionId, TurnContext, session_store
from heald_session.testing import append_unchecked
from heald_subagent import ChildRow

if TYPE_CHECKING:
    from tests.plugins.tools_agents.conftest import Office, OpenOffice


def delegate(task: str, **more: object) -> Call:
    return Call(tool="subagent", arguments={"task": task, **more})


def start(task: str, label: str) -> Call:
    return delegate(task, label=label, mode="continuable")


def id_in(conversation: Conversation, tool: str = "subagent") -> str:
    found = re.search(r"Subagent (\S+)", conversation.results(tool)[0].text)
    assert found is not None
    return found[1]


async def test_the_model_is_shown_four_tools_that_say_what_everything_is_for(
    open_office: OpenOffice,
) -> None:
    async with open_office() as office:
        await office.go()
        context = office.boss.session.context()
        assert isinstance(context, TurnContext)
        names = [tool.name for tool in context.tools]
        assert names == ["subagent", "send_message", "wait_agents", "list_agents"]
        for tool in context.tools:
            assert len(tool.description) > 100
            assert all(part["description"] for part in tool.parameters["properties"].values())
            assert tool.parameters["additionalProperties"] is False


async def test_a_one_shot_result_comes_with_the_id_of_the_child(open_office: OpenOffice) -> None:
    async with open_office(lambda _: [delegate("count the files")]) as office:
        await office.go()
        (result,) = office.results("subagent")
        (row,) = await office.service.list_children(office.boss.session.id)
        assert isinstance(row, ChildRow)
        assert row.mode == "one-shot"
        assert result.text == f"Subagent {row.id} completed:\nI did: count the files"
        assert not result.is_error


async def test_several_delegations_of_one_step_run_side_by_side(open_office: OpenOffice) -> None:
    all_here = asyncio.Barrier(3)

    async def meet(conversation: Conversation) -> Reply:
        await all_here.wait()
        return Reply(text=f"met: {conversation.prompt}")

    async def route(conversation: Conversation) -> Reply:
        if conversation.prompt != "go":
            return await meet(conversation)
        calls = [delegate(f"task {n}") for n in range(3)] if conversation.step == 0 else []
        return Reply(text="done", calls=tuple(calls))

    async with open_office(others=[Script("meeting", route)]) as office:
        office.boss.use_model("scripted:meeting")
        await office.go()
        texts = [result.text for result in office.results("subagent")]
        assert [text.partition("\n")[2] for text in texts] == [f"met: task {n}" for n in range(3)]


async def test_a_child_that_fails_is_an_error_result_that_says_why(
    open_office: OpenOffice,
) -> None:
    def route(conversation: Conversation) -> Reply:
        if conversation.prompt != "go":
            return Reply(failure="refused")
        return Reply(calls=(delegate("x"),) if conversation.step == 0 else ())

    async with open_office(others=[Script("failing", route)]) as office:
        office.boss.use_model("scripted:failing")
        await office.go()
        (result,) = office.results("subagent")
        assert result.is_error
        assert re.match(r"Subagent \S+ failed:\nMODEL_FAILED", result.text)


async def test_a_continuable_child_is_started_spoken_to_and_waited_for(
    open_office: OpenOffice,
) -> None:
    async with open_office(
        lambda _: [start("first", "helper")],
        lambda _: [Call(tool="wait_agents")],
        lambda c: [Call(tool="send_message", arguments={"to": id_in(c), "text": "second"})],
        lambda c: [Call(tool="wait_agents", arguments={"ids": [id_in(c)]})],
    ) as office:
        outcome = await office.go()
        assert outcome.turn == 1
        (started,) = office.results("subagent")
        (row,) = await office.service.list_children(office.boss.session.id)
        assert started.text.startswith(f"Subagent {row.id} (helper) has accepted the task")
        (sent,) = office.results("send_message")
        assert sent.text == f"Subagent {row.id} has accepted the message."
        assert [result.text for result in office.results("wait_agents")] == [
            f"Subagent {row.id} completed:\nI did: first",
            f"Subagent {row.id} completed:\nI did: second",
        ]


async def test_refusals_are_results_with_their_code(open_office: OpenOffice) -> None:
    async with open_office(
        lambda _: [
            delegate("x", mode="continuable"),
            delegate(""),
            delegate("x", preset="nothing"),
            Call(tool="send_message", arguments={"to": "nobody", "text": "hello"}),
            Call(tool="wait_agents", arguments={"ids": ["nobody"]}),
            Call(tool="wait_agents", arguments={"timeout_s": -1}),
        ]
    ) as office:
        await office.go()
        results = [
            r for t in ("subagent", "send_message", "wait_agents") for r in office.results(t)
        ]
        assert all(result.is_error for result in results)
        codes = [result.text.partition(":")[0] for result in results]
        assert codes == [
            "SUBAGENT_DELEGATION_INVALID",
            "Invalid arguments for tool 'subagent'",
            "SERVICE_ABSENT",
            "SESSION_NOT_FOUND",
            "SUBAGENT_NOT_LIVE",
            "Invalid arguments for tool 'wait_agents'",
        ]


async def test_waiting_with_nobody_to_wait_for_says_so(open_office: OpenOffice) -> None:
    async with open_office(lambda _: [Call(tool="wait_agents")]) as office:
        await office.go()
        assert office.results("wait_agents")[0].text == "(no subagents to wait for)"


async def test_the_list_has_labels_and_activity_leaves_one_shots_out_and_keeps_diagnostics(
    open_office: OpenOffice,
) -> None:
    async with open_office(
        lambda _: [delegate("errand")],
        lambda _: [Call(tool="list_agents")],
        lambda _: [start("a", "first"), start("b", "second")],
        lambda _: [Call(tool="wait_agents")],
        lambda _: [Call(tool="list_agents", arguments={"scope": "children"})],
        lambda _: [Call(tool="list_agents", arguments={"scope": "descendants"})],
    ) as office:
        store = office.host.scope.require(session_store)
        await office.go()
        empty, children, descendants = (r.text for r in office.results("list_agents"))
        assert empty == "(no subagents)"
        rows = await office.service.list_children(office.boss.session.id)
        first, second = (r for r in rows if isinstance(r, ChildRow) and r.label is not None)
        assert sorted(children.splitlines()) == sorted(
            [f"{first.id}: {first.label!r}, running", f"{second.id}: {second.label!r}, running"]
        )
        assert all(line.endswith(", child of boss") for line in descendants.splitlines())
        broken = await store.create(
            cwd="/", id=SessionId("broken"), parent_session=SessionId("boss"), origin="subagent"
        )
        append_unchecked(broken, "subagent/descriptor", {"version": 3})
        await store.dispose(broken)
        await office.go()
        assert "broken: cannot be read (corrupt)" in office.results("list_agents")[-2].text


async def stored(
    office: Office, ident: str, parent: str, descriptor: Mapping[str, object], *, live: bool = False
) -> None:
    """Make a subagent that nobody runs."""
    store = office.host.scope.require(session_store)
    session = await store.create(
        cwd="/", id=SessionId(ident), parent_session=SessionId(parent), origin="subagent"
    )
    append_unchecked(session, "subagent/descriptor", descriptor)
    if not live:
        await store.dispose(session)


HELPER = {"version": 2, "mode": "continuable", "provider": "spawn"}


async def test_the_list_is_of_children_unless_more_is_asked_for_and_tells_who_is_inactive(
    open_office: OpenOffice,
) -> None:
    async with open_office(
        lambda _: [Call(tool="list_agents")],
        lambda _: [Call(tool="list_agents", arguments={"scope": "descendants"})],
    ) as office:
        await stored(office, "asleep", "boss", HELPER | {"label": "reader"})
        await stored(office, "awake", "boss", HELPER | {"label": "writer"}, live=True)
        await stored(office, "below", "asleep", HELPER | {"label": "their own"})
        await office.go()
        children, descendants = (result.text for result in office.results("list_agents"))
        assert sorted(children.splitlines()) == [
            "asleep: 'reader', inactive",
            "awake: 'writer', running",
        ]
        assert sorted(descendants.splitlines()) == [
            "asleep: 'reader', inactive, child of boss",
            "awake: 'writer', running, child of boss",
            "below: 'their own', inactive, child of asleep",
        ]


@pytest.mark.parametrize("scope", ["children", "descendants"])
async def test_a_list_ends_with_the_turn_that_asked_for_it(
    open_office: OpenOffice, monkeypatch: pytest.MonkeyPatch, scope: str
) -> None:
    call = Call(tool="list_agents", arguments={"scope": scope})
    async with open_office(lambda _: [call]) as office:
        seen: list[bool] = []
        service = type(office.service)
        listed = getattr(service, f"list_{scope}")

        async def spied(self: object, id: SessionId, *, cancel: CancelToken) -> object:  # noqa: A002
            office.boss.cancel("a person said stop")
            seen.append(cancel.cancelled)
            return await listed(self, id, cancel=cancel)

        monkeypatch.setattr(service, f"list_{scope}", spied)
        assert (await office.go()).outcome == "aborted"
        assert seen == [True]


async def test_without_subagents_the_tools_are_refused(heald_host: HostFactory) -> None:
    with pytest.raises(CompositionError, match="tools-agents"):
        async with heald_host(rows=[Row("tools-agents", "tools-agents")]):
            pass


def test_the_tools_read_no_event_and_ask_nobody_but_the_service() -> None:
    allowed = {"heald", "heald_agent", "heald_subagent", "heald_session", "heald_tools_agents"}
    for path in Path(heald_tools_agents.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("heald"):
                assert str(node.module).partition(".")[0] in allowed
                if node.module == "heald_session":
                    assert [alias.name for alias in node.names] == ["SessionId"]
