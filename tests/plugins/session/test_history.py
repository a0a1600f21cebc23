"""What the model sees: the fold of surface events, balanced for a request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald import Host
from heald_session import (
    APPEND,
    AssistantMessage,
    Message,
    Seq,
    Session,
    Surface,
    ToolCall,
    ToolResult,
    ToolSchema,
    TurnContext,
    UserMessage,
    session_store,
)
from heald_session.history import NO_RESULT, balanced
from heald_session.testing import append_unchecked


def user(text: str) -> UserMessage:
    return UserMessage(text, text)


def asks(*calls: str, text: str = "") -> AssistantMessage:
    return AssistantMessage(text, [ToolCall(call, "read", {}) for call in calls])


def result(call: str, text: str = "fine") -> ToolResult:
    return ToolResult(call, "read", text)


def missing(call: str) -> ToolResult:
    return ToolResult(call, "read", NO_RESULT, is_error=True)


@pytest.fixture
async def session(host: Host) -> Session:
    return await host.scope.require(session_store).create(cwd=None)


def see(session: Session, message: Message, surface: Surface | None = APPEND) -> Seq:
    types: dict[type, str] = {
        UserMessage: "user/message",
        AssistantMessage: "assistant/message",
        ToolResult: "tool/result",
    }
    return session.append(types[type(message)], message, surface=surface).seq


@pytest.mark.parametrize(
    ("log", "request_"),
    [
        ([], []),
        ([user("a"), AssistantMessage("b")], [user("a"), AssistantMessage("b")]),
        ([AssistantMessage("")], []),
        ([asks("c"), result("c")], [asks("c"), result("c")]),
        ([asks("c", "d"), result("d"), result("c")], [asks("c", "d"), result("c"), result("d")]),
        ([asks("c", "d"), result("d")], [asks("c", "d"), missing("c"), result("d")]),
        ([asks("c")], [asks("c"), missing("c")]),
        ([asks("c"), user("x"), result("c")], [asks("c"), result("c"), user("x")]),
        ([asks("c"), result("c"), result("c", "again")], [asks("c"), result("c")]),
        ([result("c"), user("x")], [user("x")]),
        (
            [asks("c"), result("c", "1"), asks("c"), result("c", "2")],
            [asks("c"), result("c", "1"), asks("c"), result("c", "2")],
        ),
        ([asks("c", "c"), result("c")], [asks("c", "c"), result("c"), missing("c")]),
    ],
)
def test_a_request_is_balanced(log: list[Message], request_: list[Message]) -> None:
    assert list(balanced(log)) == request_


messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(user, st.sampled_from("xyz")),
    st.builds(result, st.sampled_from("abc")),
    st.builds(
        lambda calls, text: asks(*calls, text=text),
        st.lists(st.sampled_from("abc"), max_size=3),
        st.sampled_from(["", "t"]),
    ),
)


@given(st.lists(messages))
def test_any_history_makes_a_request_that_a_provider_takes(log: list[Message]) -> None:
    request = list(balanced(log))
    owed: list[str] = []
    for message in request:
        if isinstance(message, ToolResult):
            assert owed.pop(0) == message.call_id
        else:
            assert owed == []
            if isinstance(message, AssistantMessage):
                assert message.text or message.tool_calls
                owed = [call.id for call in message.tool_calls]
    assert owed == []
    assert list(balanced(request)) == request
    assert [m for m in request if isinstance(m, UserMessage)] == [
        m for m in log if isinstance(m, UserMessage)
    ]


async def test_only_surface_events_are_seen(session: Session) -> None:
    session.append("turn/start", {"turn": 1})
    session.append("inbox/message", {"id": "m", "text": "hidden"})
    see(session, user("hidden too"), surface=None)
    see(session, user("a"))
    assert session.history() == (user("a"),)


async def test_a_replacement_stands_in_the_place_of_its_range(session: Session) -> None:
    seqs = [see(session, user(text)) for text in "abcd"]
    summary = see(session, user("b and c"), Surface("replace", seqs[1], seqs[2]))
    assert session.history() == (user("a"), user("b and c"), user("d"))
    see(session, user("e"))
    see(session, user("all of it"), Surface("replace", seqs[0], summary))
    assert session.history() == (user("all of it"), user("d"), user("e"))
    assert [event.data["text"] for event in session.hot()][:4] == list("abcd")


async def test_a_stored_message_that_no_longer_fits_is_seen_as_far_as_it_is_known(
    session: Session,
) -> None:
    data: dict[str, Any] = {"id": "m", "text": "hello", "mood": "sunny"}
    append_unchecked(session, "user/message", data, surface=APPEND)
    append_unchecked(session, "user/message", {"text": 7}, surface=APPEND)
    append_unchecked(session, "user/message", [], surface=APPEND)
    append_unchecked(session, "acme/gone", {"text": "x"}, surface=APPEND)
    append_unchecked(session, "user/message", data, surface=Surface("replace", Seq(77), Seq(78)))
    assert session.history() == (UserMessage("m", "hello"), UserMessage("m", "hello"))


async def test_the_context_is_the_last_one_that_can_be_read(session: Session) -> None:
    assert session.context() is None
    first = TurnContext("be brief", [ToolSchema("read", "Reads.", {"type": "object"})])
    session.append("turn/context", first)
    assert session.context() == first
    append_unchecked(session, "turn/context", {"system": 1})
    assert session.context() == first
    session.append("turn/context", TurnContext("be long", []))
    assert session.context() == TurnContext("be long", [])


async def test_history_and_context_are_the_same_after_a_resume(host: Host) -> None:
    store = host.scope.require(session_store)
    session = await store.create(cwd=None)
    session.append("turn/context", TurnContext("be brief", []))
    for message in (user("a"), asks("c"), result("c"), AssistantMessage("done")):
        see(session, message)
    before = session.history(), session.context()
    await store.dispose(session)
    resumed = await store.resume(session.id)
    assert resumed is not session
    assert (resumed.history(), resumed.context()) == before
