"""Logs that the reference system wrote say the same here as they said there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from heald import Host
from heald.testing import CommandRunner
from heald_query import session_query
from heald_session import (
    AssistantMessage,
    CutInvalid,
    LogOffset,
    SessionId,
    ToolResult,
    session_store,
)
from heald_transfer.importing import files_in

FOLDER = os.environ.get("HEALD_REFERENCE_LOGS")
pytestmark = pytest.mark.skipif(not FOLDER, reason="HEALD_REFERENCE_LOGS names no folder of logs")

EXPECTED: dict[str, Any] = (
    json.loads(Path(FOLDER, "expected.json").read_text("utf-8")) if FOLDER else {}
)
OUR_TYPE = {
    "tool/call": "tool/start",
    "request/header": "turn/context",
    "session/title": "session/renamed",
}
SAME_TYPE = {
    "turn/start",
    "turn/end",
    "step/start",
    "step/end",
    "user/message",
    "assistant/message",
    "tool/result",
    "subagent/descriptor",
}
BROKEN_OFF = {id_ for id_, one in EXPECTED.items() if one["syntheticClosers"]}


@pytest.fixture
async def host(keeping: Any, kept: Any) -> Any:
    """Return a host that has imported every log."""
    async with keeping() as host:
        for path in files_in(Path(FOLDER or "")):
            for one in await kept(host).bring(path):
                assert one.error is None
        yield host


def mapped(types: dict[str, int]) -> dict[str, int]:
    """Return the numbers of events by the types that they have here."""
    named: dict[str, int] = {}
    for type_, count in types.items():
        ours = OUR_TYPE.get(type_, type_ if type_ in SAME_TYPE else f"reference/{type_}")
        named[ours] = named.get(ours, 0) + count
    return named


async def test_every_session_is_there_with_its_header_its_cut_and_all_its_events(
    host: Host, kept: Any
) -> None:
    assert sorted(await kept(host).names()) == sorted(EXPECTED)
    for id_, expected in EXPECTED.items():
        header, cut, events = await kept(host).stored(id_)
        told = expected["header"]
        assert header.created_at == told["createdAt"]
        assert header.cwd == told["cwd"]
        assert header.parent_session == told.get("parentSession")
        assert header.origin == told.get("origin")
        assert header.delegation_depth == told["delegationDepth"]
        assert header.agent_preset == told["agentPreset"]
        assert (cut, header.is_seeded) == (told.get("seedLength", 0), "seedLength" in told)
        assert [event.seq for event in events] == list(range(expected["storedEvents"]))


async def test_every_event_has_the_type_that_means_the_same(host: Host, kept: Any) -> None:
    for id_, expected in EXPECTED.items():
        if id_ in BROKEN_OFF:
            session = await host.scope.require(session_store).resume(SessionId(id_))
            events = [event async for event in session.read()]
        else:
            _, _, events = await kept(host).stored(id_)
        found: dict[str, int] = {}
        for event in events:
            found[event.type] = found.get(event.type, 0) + 1
        assert found == mapped(expected["types"])
        assert events[-1].seq == expected["restored"]["asOfSeq"]


async def test_projections_have_the_same_values(host: Host, kept: Any) -> None:
    for id_, expected in EXPECTED.items():
        told_here = ("sessionStats", "tokenUsage", "title")
        found = await kept(host).fold(id_, "subagent", "subagentTiming", "agentPreset", *told_here)
        told = expected["restored"]["values"]
        assert found["subagent"] == told["subagent"]
        assert found["subagentTiming"] == {"settled_ms": told["subagentTiming"]["settledMs"]}
        assert found["agentPreset"] == expected["header"]["agentPreset"]
        stats, types = found["sessionStats"], expected["types"]
        assert stats["turns"] == types["turn/start"]
        assert stats["steps"] == types["step/start"]
        assert sum(stats["tools"].values()) == types.get("tool/call", 0)
        tokens = found["tokenUsage"]
        assert tokens["output_tokens"] > 0
        assert set(tokens["models"]) == {"deepseek-official:deepseek-v4-flash"}
        _, _, events = await kept(host).stored(id_)
        titles = [event.data["title"] for event in events if event.type == "session/renamed"]
        assert found["title"] == {"text": titles[-1]}


async def test_every_step_names_the_model_that_answered(host: Host, kept: Any) -> None:
    for id_ in EXPECTED:
        _, _, events = await kept(host).stored(id_)
        models = {event.data["model"] for event in events if event.type == "step/start"}
        assert models == {"deepseek-official:deepseek-v4-flash"}


async def test_a_broken_off_session_gets_the_same_closers_when_it_is_resumed(
    host: Host,
) -> None:
    assert BROKEN_OFF
    for id_ in EXPECTED:
        session = await host.scope.require(session_store).resume(SessionId(id_))
        stored = LogOffset(EXPECTED[id_]["storedEvents"])
        closers = [event.type async for event in session.read(stored)]
        assert closers == [one["type"] for one in EXPECTED[id_]["syntheticClosers"]]
        history = session.history()
        calls = [c.id for m in history if isinstance(m, AssistantMessage) for c in m.tool_calls]
        results = [m.call_id for m in history if isinstance(m, ToolResult)]
        assert calls == results


async def test_a_session_can_be_forked_where_no_turn_is_open_and_nowhere_else(
    host: Host, kept: Any
) -> None:
    store = host.scope.require(session_store)
    id_ = next(id_ for id_, one in EXPECTED.items() if one["children"])
    _, _, events = await kept(host).stored(id_)
    open_at = set()
    inside = False
    for event in events:
        inside = event.type == "turn/start" or (inside and event.type != "turn/end")
        if inside:
            open_at.add(event.seq + 1)
    for cut in {
        0,
        1,
        len(events),
        *list(open_at)[:5],
        *[c for c in range(len(events)) if c not in open_at],
    }:
        if cut in open_at:
            with pytest.raises(CutInvalid):
                await store.fork(SessionId(id_), cut=LogOffset(cut))
        else:
            child = await store.fork(SessionId(id_), cut=LogOffset(cut))
            assert (child.cut, child.header.agent_preset) == (cut, "standard")
            await store.dispose(child)


def test_subagents_are_listed_as_they_were_there(heald_cli: CommandRunner) -> None:
    done = heald_cli("sessions", "import", str(FOLDER))
    assert len(done.stdout.splitlines()) == len(EXPECTED)
    for id_, expected in EXPECTED.items():
        for words, rows in (((), "children"), (("--descendants",), "descendants")):
            found = json.loads(heald_cli("agents", "list", id_, "--json", *words).stdout)
            assert found == [snake(row) for row in expected[rows]]


def snake(row: dict[str, Any]) -> dict[str, Any]:
    names = {"hasChildren": "has_children", "parentId": "parent_id"}
    return {names.get(name, name): value for name, value in row.items()}


async def test_what_is_exported_of_them_comes_back(
    host: Host, kept: Any, keeping: Any, tmp_path: Path
) -> None:
    from heald_transfer.exporting import export_to

    path = tmp_path / "all.heald.zst"
    ids = [SessionId(id_) for id_ in EXPECTED]
    await export_to(path, host.scope.require(session_query), ids, replace=False)
    async with keeping(tmp_path / "elsewhere") as other:
        assert all(one.error is None for one in await kept(other).bring(path))
        for id_ in ids:
            assert (await kept(other).stored(id_))[1:] == (await kept(host).stored(id_))[1:]
