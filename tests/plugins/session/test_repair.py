"""What a resuming reader appends to a log whose last turn was broken off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from heald import Host
from heald_session import APPEND, Event, NewEvent, SessionId, session_store
from heald_session.repair import CAUSE, NEVER_STARTED, OUTCOME_UNKNOWN
from heald_session.testing import append_unchecked

ONE = SessionId("one")
OpenHost = Callable[..., Any]


def turn(n: int = 1) -> NewEvent:
    return NewEvent("turn/start", {"turn": n})


def end(n: int = 1) -> NewEvent:
    return NewEvent("turn/end", {"turn": n, "outcome": "completed"})


def step(n: int = 1) -> NewEvent:
    return NewEvent("step/start", {"turn": 1, "step": n, "model": "scripted:demo"})


def step_end(n: int = 1) -> NewEvent:
    return NewEvent("step/end", {"turn": 1, "step": n})


def asks(*calls: str) -> NewEvent:
    tool_calls = [{"id": call, "name": f"tool-{call}", "arguments": {}} for call in calls]
    return NewEvent("assistant/message", {"text": "", "tool_calls": tool_calls}, APPEND)


def started(call: str) -> NewEvent:
    return NewEvent("tool/start", {"call_id": call, "name": f"tool-{call}"})


def result(call: str) -> NewEvent:
    return NewEvent("tool/result", {"call_id": call, "name": f"tool-{call}", "text": ""}, APPEND)


def unanswered(call: str, text: str) -> tuple[str, Any]:
    data = {"call_id": call, "name": f"tool-{call}", "text": text, "is_error": True}
    return "tool/result", data


ABORTED = ("turn/end", {"turn": 1, "outcome": "aborted", "cause": CAUSE})
STEP_ENDED = ("step/end", {"turn": 1, "step": 1})

CASES: dict[str, tuple[list[NewEvent], list[tuple[str, Any]]]] = {
    "nothing": ([], []),
    "no turn": ([NewEvent("inbox/message", {"id": "m", "text": "hi"})], []),
    "balanced": ([turn(), step(), asks("a"), started("a"), result("a"), step_end(), end()], []),
    "open turn with no step": ([turn()], [ABORTED]),
    "open step": ([turn(), step()], [STEP_ENDED, ABORTED]),
    "between steps": ([turn(), step(), asks(), step_end()], [ABORTED]),
    "never started": (
        [turn(), step(), asks("a")],
        [unanswered("a", NEVER_STARTED), STEP_ENDED, ABORTED],
    ),
    "outcome unknown": (
        [turn(), step(), asks("a"), started("a")],
        [unanswered("a", OUTCOME_UNKNOWN), STEP_ENDED, ABORTED],
    ),
    "answered, step open": (
        [turn(), step(), asks("a"), started("a"), result("a")],
        [STEP_ENDED, ABORTED],
    ),
    "several calls in order": (
        [turn(), step(), asks("a", "b", "c", "d"), started("c"), started("a"), result("c")],
        [
            unanswered("a", OUTCOME_UNKNOWN),
            unanswered("b", NEVER_STARTED),
            unanswered("d", NEVER_STARTED),
            STEP_ENDED,
            ABORTED,
        ],
    ),
    "only the open tail turn": (
        [turn(), step(), asks("old"), end(), turn(2), end(2)],
        [],
    ),
}


@pytest.mark.parametrize(("log", "appended"), CASES.values(), ids=CASES.keys())
async def test_a_broken_turn_is_closed_by_ordinary_appends(
    open_host: OpenHost, log: list[NewEvent], appended: list[tuple[str, Any]]
) -> None:
    marker = NewEvent("acme/note", {"text": "so that there is a log"})
    async with open_host() as host:
        store = host.scope.require(session_store)
        session = await store.create(cwd=None, id=ONE, first=[marker, *log])
        before = list(session.hot())
    async with open_host() as host:
        resumed = await host.scope.require(session_store).resume(ONE)
        events = list(resumed.hot())
    assert events[: len(before)] == before
    assert [shape(event) for event in events[len(before) :]] == appended
    async with open_host() as host:
        again = await host.scope.require(session_store).resume(ONE)
        assert list(again.hot()) == events


def shape(event: Event) -> tuple[str, Any]:
    assert (event.surface == APPEND) == (event.type == "tool/result")
    return event.type, event.data


async def test_malformed_events_of_a_broken_turn_are_survived(
    host: Host,
) -> None:
    store = host.scope.require(session_store)
    session = await store.create(cwd=None, id=ONE)
    shapes: list[Any] = [{}, [], None, {"tool_calls": [1, {"id": 2}]}]
    for kind in ("turn/start", "step/start", "assistant/message", "tool/start", "tool/result"):
        for data in shapes:
            append_unchecked(session, kind, data)
    await store.dispose(session)
    resumed = await store.resume(ONE)
    assert resumed.hot()[-1].type == "turn/end"
