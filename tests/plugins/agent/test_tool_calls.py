from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest

from heald import Host
from heald_agent import (
    Agent,
    ModelReply,
    ModelRequest,
    Tool,
    ToolContext,
    ToolError,
    ToolReply,
    ToolRequest,
    agents,
)
from heald_models_scripted import Call, Reply, steps
from heald_session import ToolCall, after

HostWith = Callable[..., AbstractAsyncContextManager[Host]]


class Item(msgspec.Struct, forbid_unknown_fields=True):
    name: str = "x"


def tool(name: str, run: Any, **more: Any) -> Tool[Item]:
    return Tool(name=name, description=f"Do {name}.", arguments=Item, run=run, **more)


async def say(arguments: Item, _context: ToolContext) -> str:
    return arguments.name


async def ran(host: Host, cwd: Path) -> list[dict[str, Any]]:
    """Run one turn of the script `calls` and return the results the model got."""
    agent = await host.scope.require(agents).create(cwd=cwd, model="scripted:calls")
    await agent.send("go")
    outcome = await agent.settled()
    assert outcome.outcome == "completed"
    return results_of(agent)


def results_of(agent: Agent) -> list[dict[str, Any]]:
    return [event.data for event in agent.session.hot() if event.type == "tool/result"]


def calling(*calls: str | Call) -> Any:
    made = tuple(Call(tool=call) if isinstance(call, str) else call for call in calls)
    return steps("calls", [Reply(calls=made), Reply(text="done")])


async def raises_tool_error(_arguments: Item, _context: ToolContext) -> str:
    raise ToolError("there is no such file; list the directory first")


async def raises_anything(_arguments: Item, _context: ToolContext) -> str:
    raise KeyError("oops")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("nothing to say")


async def raises_what_cannot_be_shown(_arguments: Item, _context: ToolContext) -> str:
    raise Unspeakable


async def leaves(_arguments: Item, _context: ToolContext) -> str:
    raise SystemExit(3)


async def cancels_itself(_arguments: Item, _context: ToolContext) -> str:
    raise asyncio.CancelledError


async def never_ends(_arguments: Item, _context: ToolContext) -> str:
    await asyncio.Event().wait()
    return "never"


async def returns_a_number(_arguments: Item, _context: ToolContext) -> Any:
    return 7


async def returns_odd_text(_arguments: Item, _context: ToolContext) -> str:
    return "caf\udce9"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (raises_tool_error, "there is no such file; list the directory first"),
        (raises_anything, "Tool 'body' failed: KeyError: 'oops'"),
        (raises_what_cannot_be_shown, "Tool 'body' failed: Unspeakable: (it cannot be shown)"),
        (leaves, "sys.exit(3)"),
        (cancels_itself, "cancelled itself"),
        (returns_a_number, "its result is not text"),
    ],
)
async def test_whatever_a_body_does_the_model_reads_it_as_an_error(
    host_with: HostWith, tmp_path: Path, run: Any, expected: str
) -> None:
    async with host_with(tools=[tool("body", run)], scripts=[calling("body")]) as host:
        (result,) = await ran(host, tmp_path)
    assert result["is_error"]
    assert expected in result["text"]


async def test_text_that_no_log_can_hold_is_spelt_out(host_with: HostWith, tmp_path: Path) -> None:
    async with host_with(tools=[tool("odd", returns_odd_text)], scripts=[calling("odd")]) as host:
        (result,) = await ran(host, tmp_path)
    assert result["text"] == "caf\\udce9"
    assert "is_error" not in result


async def test_a_body_that_takes_too_long_is_ended(host_with: HostWith, tmp_path: Path) -> None:
    brought = [tool("slow", never_ends), tool("slower", never_ends, timeout=0.02)]
    script = calling("slow", "slower")
    async with host_with(tools=brought, scripts=[script], agent={"tool_timeout_s": 0.05}) as host:
        results = await ran(host, tmp_path)
    assert ["0.05 s" in results[0]["text"], "0.02 s" in results[1]["text"]] == [True, True]
    assert all(result["is_error"] for result in results)


async def test_a_tool_of_its_own_limit_outlives_the_rows(
    host_with: HostWith, tmp_path: Path
) -> None:
    async def patient(_arguments: Item, _context: ToolContext) -> str:
        await asyncio.sleep(0.05)
        return "there"

    brought = [tool("patient", patient, timeout=math.inf)]
    async with host_with(
        tools=brought, scripts=[calling("patient")], agent={"tool_timeout_s": 0.01}
    ) as host:
        (result,) = await ran(host, tmp_path)
    assert result["text"] == "there"


async def test_a_body_that_will_not_end_is_left_behind(
    host_with: HostWith, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    let_go = asyncio.Event()

    async def stubborn(_arguments: Item, _context: ToolContext) -> str:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    config = {"tool_timeout_s": 0.02, "cancel_grace_s": 0.02}
    async with host_with(
        tools=[tool("stubborn", stubborn)], scripts=[calling("stubborn")], agent=config
    ) as host:
        (result,) = await ran(host, tmp_path)
        let_go.set()
    assert result["is_error"]
    assert "does not end when cancelled" in caplog.text


async def test_unknown_tools_and_bad_arguments_are_answered_with_what_to_do(
    host_with: HostWith, tmp_path: Path
) -> None:
    script = calling(
        "reed",
        Call(tool="read", arguments={"name": 3}),
        Call(tool="read", arguments={"nam": "x"}),
        Call(tool="read", arguments={"name": "ok"}),
    )
    async with host_with(tools=[tool("read", say)], scripts=[script]) as host:
        agent_results = await ran(host, tmp_path)
    texts = [result["text"] for result in agent_results]
    assert "did you mean 'read'" in texts[0]
    assert "Expected `str`, got `int` - at `$.name`" in texts[1]
    assert "unknown field `nam`" in texts[2]
    assert [result.get("is_error", False) for result in agent_results] == [True, True, True, False]
    assert texts[3] == "ok"


async def test_a_call_that_does_not_run_has_no_start(host_with: HostWith, tmp_path: Path) -> None:
    script = calling("nothing", "read")
    async with host_with(tools=[tool("read", say)], scripts=[script]) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:calls")
        await agent.send("go")
        await agent.settled()
        starts = [e.data for e in agent.session.hot() if e.type == "tool/start"]
    assert [start["name"] for start in starts] == ["read"]


async def test_guards_may_refuse_and_one_that_breaks_refuses(
    host_with: HostWith, tmp_path: Path
) -> None:
    ran_names: list[str] = []

    async def note(arguments: Item, _context: ToolContext) -> str:
        ran_names.append(arguments.name)
        return "ran"

    def careful(request: ToolRequest) -> str | None:
        name = request.call.arguments["name"]
        if name == "broken":
            raise RuntimeError("guard down")
        return "not that one" if name == "secret" else None

    script = calling(*(Call(tool="note", arguments={"name": n}) for n in ("secret", "broken", "a")))
    async with host_with(tools=[tool("note", note)], guards=[careful], scripts=[script]) as host:
        results = await ran(host, tmp_path)
    assert results[0]["text"] == "Refused: not that one"
    assert "the guard of row brings failed: RuntimeError: guard down" in results[1]["text"]
    assert results[2]["text"] == "ran"
    assert ran_names == ["a"]


async def test_parallel_bodies_overlap_and_results_keep_the_models_order(
    host_with: HostWith, tmp_path: Path
) -> None:
    last_done = asyncio.Event()

    async def side_by_side(arguments: Item, _context: ToolContext) -> str:
        if arguments.name == "first":
            await last_done.wait()
        else:
            last_done.set()
        return arguments.name

    script = calling(*(Call(tool="beside", arguments={"name": n}) for n in ("first", "last")))
    brought = [tool("beside", side_by_side, parallel=True)]
    async with host_with(tools=brought, scripts=[script]) as host:
        results = await ran(host, tmp_path)
    assert [result["text"] for result in results] == ["first", "last"]


async def test_no_more_bodies_than_the_pool_has_run_at_once(
    host_with: HostWith, tmp_path: Path
) -> None:
    running, most = [0], [0]

    async def count(_arguments: Item, _context: ToolContext) -> str:
        running[0] += 1
        most[0] = max(most[0], running[0])
        for _ in range(5):
            await asyncio.sleep(0)
        running[0] -= 1
        return "ok"

    brought = [tool("count", count, parallel=True)]
    script = calling(*["count"] * 9)
    async with host_with(tools=brought, scripts=[script], agent={"parallel_tools": 3}) as host:
        assert len(await ran(host, tmp_path)) == 9
    assert most[0] == 3


async def test_an_exclusive_tool_waits_for_those_before_and_holds_up_those_after(
    host_with: HostWith, tmp_path: Path
) -> None:
    running: list[str] = []
    beside: list[set[str]] = []

    async def body(arguments: Item, _context: ToolContext) -> str:
        running.append(arguments.name)
        for _ in range(5):
            await asyncio.sleep(0)
            beside.append(set(running))
        running.remove(arguments.name)
        return arguments.name

    names = ["a", "b", "ALONE", "c", "d"]
    script = calling(
        *(Call(tool="x" if n == "ALONE" else "p", arguments={"name": n}) for n in names)
    )
    brought = [tool("p", body, parallel=True), tool("x", body)]
    async with host_with(tools=brought, scripts=[script]) as host:
        results = await ran(host, tmp_path)
    assert [result["text"] for result in results] == names
    assert {"a", "b"} in beside
    assert {"c", "d"} in beside
    assert all(group == {"ALONE"} for group in beside if "ALONE" in group)


async def test_the_start_is_durable_before_the_body_runs(
    host_with: HostWith, tmp_path: Path
) -> None:
    durable: list[bool] = []

    async def look(_arguments: Item, context: ToolContext) -> str:
        session = context.agent.session
        (start,) = [e for e in session.hot() if e.type == "tool/start"]
        durable.append(session.flushed >= after(start.seq))
        return "looked"

    async with host_with(
        tools=[tool("look", look)], scripts=[calling("look")], storage=True
    ) as host:
        await ran(host, tmp_path)
    assert durable == [True]


async def test_a_barrier_that_fails_runs_no_body_and_every_call_is_answered(
    host_with: HostWith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran_names: list[str] = []

    async def note(_arguments: Item, _context: ToolContext) -> str:
        ran_names.append("ran")
        return "ran"

    brought = [tool("note", note), tool("beside", note, parallel=True)]
    script = calling("note", "beside", "beside")
    async with host_with(tools=brought, scripts=[script]) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:calls")
        flush = agent.session.flush

        async def full() -> None:
            if any(event.type == "tool/start" for event in agent.session.hot()):
                raise ToolError("the disk is full")
            await flush()

        monkeypatch.setattr(agent.session, "flush", full)
        await agent.send("go")
        outcome = await agent.settled()
        results = results_of(agent)
        monkeypatch.undo()
    assert ran_names == []
    assert outcome.outcome == "failed"
    assert [result["text"] for result in results] == ["Not run: the disk is full"] * 3


async def test_denied_tools_are_neither_shown_nor_called(
    host_with: HostWith, tmp_path: Path
) -> None:
    from heald_session import session_store

    brought = [tool("read", say), tool("write", say)]
    async with host_with(tools=brought, scripts=[calling("write", "read")]) as host:
        session = await host.scope.require(session_store).create(cwd=str(tmp_path))
        agent = await host.scope.require(agents).attach(
            session, model="scripted:calls", denied_tools=frozenset({"write"}), persona="A child."
        )
        await agent.send("go")
        await agent.settled()
        context = session.context()
        assert context is not None
        assert [shown.name for shown in context.tools] == ["read"]
        assert context.system == "A child."
        refused, allowed = results_of(agent)
    assert refused["text"] == "Tool 'write' is not available to this agent."
    assert "is_error" not in allowed


async def test_middleware_stands_around_a_body_and_may_replace_its_result(
    host_with: HostWith, tmp_path: Path
) -> None:
    async def frame(
        request: ToolRequest, call_next: Callable[[ToolRequest], Awaitable[ToolReply]]
    ) -> ToolReply:
        reply = await call_next(request)
        return attrs.evolve(reply, text=f"[{reply.text}]")

    async with host_with(
        tools=[tool("read", say)], scripts=[calling("read")], around_tool=frame
    ) as host:
        (result,) = await ran(host, tmp_path)
    assert result["text"] == "[x]"


async def test_middleware_may_not_change_the_call(host_with: HostWith, tmp_path: Path) -> None:
    async def swap(
        request: ToolRequest, call_next: Callable[[ToolRequest], Awaitable[ToolReply]]
    ) -> ToolReply:
        other = ToolCall(request.call.id, request.call.name, {"name": "other"})
        return await call_next(ToolRequest(other, request.context))

    async with host_with(
        tools=[tool("read", say)], scripts=[calling("read")], around_tool=swap
    ) as host:
        (result,) = await ran(host, tmp_path)
    assert result["is_error"]
    assert "changed the call" in result["text"]


async def test_a_tool_of_the_turn_stays_what_the_turn_began_with(
    host_with: HostWith, tmp_path: Path
) -> None:
    shown: list[list[str]] = []

    async def watch(
        request: ModelRequest, call_next: Callable[[ModelRequest], Awaitable[ModelReply]]
    ) -> ModelReply:
        shown.append([schema.name for schema in request.tools])
        return await call_next(request)

    brought = [tool("b", say), tool("a", say)]
    async with host_with(tools=brought, scripts=[calling("a")], around_model=watch) as host:
        await ran(host, tmp_path)
    assert shown == [["b", "a"], ["b", "a"]]
