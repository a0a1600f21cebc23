"""What each event of a reference log becomes, and what is said of the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald_session import (
    APPEND,
    AssistantMessage,
    Event,
    SessionId,
    SessionRenamed,
    StepEnd,
    StepStart,
    Surface,
    ToolResult,
    ToolStart,
    TurnContext,
    TurnEnd,
    TurnStart,
    UserMessage,
    session_store,
)
from heald_transfer.meanings import MEANINGS
from heald_transfer.reference_lines import ReferenceEvent
from heald_transfer.translation import Translation

WriteLog = Callable[..., Path]
APPENDED = {"surfaceOp": "append"}
OURS: dict[str, type] = {
    "turn/start": TurnStart,
    "turn/end": TurnEnd,
    "turn/context": TurnContext,
    "step/start": StepStart,
    "step/end": StepEnd,
    "user/message": UserMessage,
    "assistant/message": AssistantMessage,
    "tool/start": ToolStart,
    "tool/result": ToolResult,
    "session/renamed": SessionRenamed,
}
NAMES = [
    "turn",
    "step",
    "id",
    "content",
    "source",
    "kind",
    "type",
    "text",
    "message",
    "reason",
    "header",
    "config",
    "tools",
    "chunk",
]


def numbered(*events: tuple[str, Any] | tuple[str, Any, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"type": event[0], "seq": n, "time": 1_700_000_000_000 + n, "data": event[1]}
        | (event[2] if len(event) > 2 else {})
        for n, event in enumerate(events)
    ]


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def told(event: Event) -> tuple[str, Any]:
    return event.type, event.data


TALK = numbered(
    ("turn/start", {"turn": 1}),
    ("step/start", {"turn": 1, "step": 1}),
    (
        "user/message",
        {"id": "m", "role": "user", "source": {"kind": "user"}, "content": [text("a"), text("b")]},
        APPENDED,
    ),
    (
        "request/header",
        {
            "reason": "initial",
            "header": {
                "config": {"provider": "lab", "model": "m-1", "maxTokens": 9},
                "system": "Be brief.",
                "tools": [{"name": "ls", "description": "List.", "parameters": {"type": "object"}}],
            },
        },
    ),
    ("assistant/chunk", {"chunk": {"type": "finish", "reason": {"kind": "tool-calls"}}}),
    (
        "assistant/message",
        {
            "turn": 1,
            "step": 1,
            "message": {
                "role": "assistant",
                "content": [
                    {"type": "reasoning", "text": "Hm."},
                    text("Looking."),
                    {"type": "tool-call", "id": "c", "name": "ls", "arguments": '{"path": "/"}'},
                    {"type": "tool-call", "id": "d", "name": "ls", "arguments": "not json"},
                ],
                "source": {"kind": "model", "provider": "lab", "model": "m-2"},
            },
            "usage": {"inputTokens": 5, "outputTokens": 3, "cacheReadTokens": 2},
        },
        {**APPENDED, "sourceEventSeqs": [4]},
    ),
    ("tool/call", {"turn": 1, "step": 1, "callId": "c", "name": "ls", "arguments": "{}"}),
    (
        "tool/result",
        {
            "message": {
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "c",
                        "content": [text("bin"), {"type": "image", "data": "..."}],
                        "isError": True,
                    }
                ]
            }
        },
        {**APPENDED, "sourceEventSeqs": [6]},
    ),
    ("step/end", {"turn": 1, "step": 1}),
    ("turn/end", {"turn": 1, "reason": {"kind": "aborted", "reason": {"kind": "user"}}}),
    ("agent-preset/selected", {"agentPreset": "minimal"}),
    ("session/title", {"title": "Listing", "messageSeqs": [2], "source": {"kind": "user"}}),
)


async def test_a_conversation_means_the_same(
    keeping: Any, kept: Any, reference_log: WriteLog
) -> None:
    async with keeping() as host:
        (one,) = await kept(host).bring(reference_log(TALK))
        assert one.error is None
        _, _, events = await kept(host).stored("a")
        session = await host.scope.require(session_store).resume(SessionId("a"))
        context = session.context()
        assert context is not None
        assert [tool.name for tool in context.tools] == ["ls"]
        kinds = [type(message).__name__ for message in session.history()]
        assert kinds == ["UserMessage", "AssistantMessage", "ToolResult", "ToolResult"]
    calls = [
        {"id": "c", "name": "ls", "arguments": {"path": "/"}},
        {"id": "d", "name": "ls", "arguments": "not json"},
    ]
    usage = {"input_tokens": 5, "output_tokens": 3, "cached_tokens": 2}
    tool = {"name": "ls", "description": "List.", "parameters": {"type": "object"}}
    assert [told(event) for event in events] == [
        ("turn/start", {"turn": 1}),
        ("step/start", {"turn": 1, "step": 1, "model": "lab:m-2"}),
        ("user/message", {"id": "m", "text": "a\nb"}),
        ("turn/context", {"system": "Be brief.", "tools": [tool]}),
        ("reference/assistant/chunk", TALK[4]["data"]),
        (
            "assistant/message",
            {"text": "Looking.", "tool_calls": calls, "finish": "tool_calls", "usage": usage},
        ),
        ("tool/start", {"call_id": "c", "name": "ls"}),
        ("tool/result", {"call_id": "c", "name": "ls", "text": "bin", "is_error": True}),
        ("step/end", {"turn": 1, "step": 1}),
        ("turn/end", {"turn": 1, "outcome": "aborted", "cause": "user"}),
        ("agent-preset/selected", {"preset": "minimal"}),
        ("session/renamed", {"title": "Listing"}),
    ]
    assert [event.surface for event in events if event.surface] == [APPEND] * 3
    assert (events[5].sources, events[7].sources) == ((4,), (6,))
    assert {note.partition(": ")[2] for note in one.notes} == {
        "reasoning in answers (1)",
        "image in tool results (1)",
        "settings of model requests, such as the longest answer (1)",
        "where titles came from (1)",
        "assistant/chunk (1)",
    }


@pytest.mark.parametrize(
    ("reason", "becomes"),
    [
        ({"kind": "completed"}, {"outcome": "completed"}),
        ({"kind": "aborted"}, {"outcome": "aborted", "cause": "aborted"}),
        ({"kind": "error", "error": {"message": "No."}}, {"outcome": "failed", "cause": "No."}),
        ({"kind": "blocked", "message": "Why"}, {"outcome": "failed", "cause": "Why"}),
    ],
)
async def test_how_a_turn_ended_is_kept(
    keeping: Any, kept: Any, reference_log: WriteLog, reason: object, becomes: dict[str, str]
) -> None:
    log = numbered(("turn/start", {"turn": 1}), ("turn/end", {"turn": 1, "reason": reason}))
    async with keeping() as host:
        await kept(host).bring(reference_log(log))
        _, _, events = await kept(host).stored("a")
    assert events[-1].data == {"turn": 1, **becomes}


async def test_a_packed_run_becomes_as_many_events_that_nothing_reads(
    keeping: Any, kept: Any, reference_log: WriteLog
) -> None:
    run = {"turn": 1, "step": 1, "index": 0, "dt": [5, 0], "texts": ["one", "two", "three"]}
    call = {"turn": 1, "step": 1, "index": 1, "dt": [], "id": "c", "name": "ls", "args": ["{}"]}
    lines = [
        {"type": "turn/start", "seq": 0, "time": 100, "data": {"turn": 1}},
        {"type": "text-chunks", "seq0": 1, "time0": 101, "data": run},
        {"type": "tool-call-chunks", "seq0": 4, "time0": 106, "data": call},
        {"type": "turn/end", "seq": 5, "time": 107, "data": {"reason": {"kind": "completed"}}},
    ]
    async with keeping() as host:
        await kept(host).bring(reference_log(lines))
        _, _, events = await kept(host).stored("a")
    assert [(event.seq, event.time) for event in events[1:5]] == [
        (1, 101),
        (2, 106),
        (3, 106),
        (4, 106),
    ]
    assert {event.type for event in events[1:5]} == {"reference/assistant/chunk"}
    assert events[2].data == {"turn": 1, "step": 1, "index": 0, "type": "text-chunk", "part": "two"}
    assert events[5].type == "reference/turn/end"  # it lacks its turn


async def test_replaces_shadow_the_same_messages(
    keeping: Any, kept: Any, reference_log: WriteLog
) -> None:
    def message(n: int, **more: Any) -> tuple[str, Any, dict[str, Any]]:
        data = {"id": f"m{n}", "source": {"kind": "user"}, "content": [text(f"text {n}")]}
        return "user/message", data, {**APPENDED, **more}

    log = numbered(
        message(0),
        message(1),
        ("compaction/summary", {"text": "in short"}, APPENDED),
        message(3, surfaceOp={"op": "replace", "start": 0, "end": 2}, sourceEventSeqs=[0, 1, 9]),
        message(4, surfaceOp={"op": "rotate"}),
    )
    async with keeping() as host:
        (one,) = await kept(host).bring(reference_log(log))
        _, _, events = await kept(host).stored("a")
        session = await host.scope.require(session_store).resume(SessionId("a"))
        assert [getattr(message, "id", None) for message in session.history()] == ["m3"]
    assert events[3].surface == Surface("replace", first=events[0].seq, last=events[2].seq)
    assert events[3].sources == (0, 1)
    assert [note for note in one.notes if note.startswith("not carried")] == [
        "not carried: sources that are no earlier events (1)",
        "not carried: changes of what the model sees of a form that is not known (1)",
    ]


@pytest.mark.parametrize("torn", [1, 3, 40])
async def test_a_torn_last_write_costs_that_write_and_is_told(
    keeping: Any, kept: Any, reference_log: WriteLog, torn: int
) -> None:
    path = reference_log(TALK[:3], TALK[3:6], torn=torn)
    async with keeping() as host:
        (one,) = await kept(host).bring(path)
        assert (one.error, one.events) == (None, 3)
        assert one.notes[0] == "its last write is torn: the 3 events before it are kept"
        assert len((await kept(host).stored("a"))[2]) == 3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda log: log.pop(2), "event 3 where 2"),
        (lambda log: log[2].pop("seq"), "line of event 2"),
        (lambda log: log.insert(2, ["no object"]), "line of event 2 is no object"),
        (
            lambda log: log.insert(
                2, {"type": "text-chunks", "seq0": 2, "time0": 1, "data": {"dt": [1], "texts": []}}
            ),
            "packed run at event 2",
        ),
    ],
)
async def test_a_log_with_a_gap_is_not_imported(
    keeping: Any,
    kept: Any,
    reference_log: WriteLog,
    change: Callable[[list[Any]], object],
    says: str,
) -> None:
    log = json.loads(json.dumps(TALK))
    change(log)
    async with keeping() as host:
        (one,) = await kept(host).bring(reference_log(log))
        assert says in str(one.error)
        assert await kept(host).names() == []


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({"seedLength": 99}, "inherited 99"),
        ({"seedLength": -1}, "inherited -1"),
        ({"id": ""}, "it is empty"),
        ({"id": "x" * 301}, "300"),
        ({"createdAt": "yesterday"}, "header"),
    ],
)
async def test_a_header_that_cannot_be_ours_is_refused(
    keeping: Any, kept: Any, reference_log: WriteLog, header: dict[str, Any], says: str
) -> None:
    async with keeping() as host:
        (one,) = await kept(host).bring(reference_log(TALK, **header))
        assert says in str(one.error)
        assert await kept(host).names() == []


async def test_half_a_surrogate_pair_and_times_that_run_backwards_are_mended(
    keeping: Any, kept: Any, reference_log: WriteLog
) -> None:
    log = numbered(("note", {"text": "a\ud800b"}), ("note", {"text": "\U0001f600"}))
    log[1]["time"] = 5
    async with keeping() as host:
        (one,) = await kept(host).bring(reference_log(log))
        _, _, events = await kept(host).stored("a")
    assert [event.data["text"] for event in events] == ["a\ufffdb", "\U0001f600"]
    assert events[1].time == events[0].time
    assert "not carried: times that ran backwards, set to the time before (1)" in one.notes


async def test_a_descriptor_with_limits_that_we_cannot_keep_is_no_identity(
    keeping: Any, kept: Any, reference_log: WriteLog
) -> None:
    plain = {"version": 2, "mode": "continuable", "provider": "spawn", "label": "helper"}
    more = {"agentProvider": "lab", "agentModel": "m"}
    async with keeping() as host:
        whole, limited = ({**plain, **more}, {**plain, **more, "toolFilter": ["ls"]})
        for name, data in (("whole", whole), ("limited", limited)):
            log = numbered(("subagent/descriptor", data))
            await kept(host).bring(reference_log(log, name=name))
        found = {name: await kept(host).fold(name, "subagent") for name in ("whole", "limited")}
    assert found == {
        "whole": {"subagent": {"mode": "continuable", "label": "helper", "seq": 0}},
        "limited": {"subagent": None},
    }


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "text", "finish", "a"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(
    st.lists(
        st.tuples(st.sampled_from([*MEANINGS, "else"]), values, values),
        max_size=12,
    )
)
def test_whatever_an_event_holds_it_becomes_one_event(drawn: list[tuple[str, Any, Any]]) -> None:
    translation = Translation()
    for seq, (type_, data, surface) in enumerate(drawn):
        translation.take(ReferenceEvent(type_, seq, 0, data, surface, (0,)))
    assert [event.seq for event in translation.events] == list(range(len(drawn)))
    for event, (type_, data, _) in zip(translation.events, drawn, strict=True):
        if event.type == f"reference/{type_}":
            assert event.data == data
        elif event.type in OURS:
            event.data_as(OURS[event.type])
        else:
            assert event.type in ("subagent/descriptor", "agent-preset/selected")
    translation.notes()


async def test_a_step_that_cannot_be_read_names_no_model(
    keeping: Any, kept: Any, reference_log: WriteLog
) -> None:
    log = [*TALK[:1], {**TALK[1], "data": ["step"]}, *TALK[2:6]]
    async with keeping() as host:
        (one,) = await kept(host).bring(reference_log(log))
        _, _, events = await kept(host).stored("a")
    assert told(events[1]) == ("reference/step/start", ["step"])
    assert "not carried: step/start of a form that is not known (1)" in one.notes


async def test_what_waited_in_the_inbox_is_told(
    keeping: Any, kept: Any, reference_log: WriteLog
) -> None:
    def splice(**data: Any) -> tuple[str, Any]:
        return "agent/inbox/spliced", {"target": "next-turn", "start": 0, **data}

    log = numbered(splice(inserted=[{"id": "a"}, {"id": "b"}]), splice(removedCount=1, inserted=[]))
    async with keeping() as host:
        (one,) = await kept(host).bring(reference_log(log))
    assert "not carried: messages that waited in the inbox (1)" in one.notes
