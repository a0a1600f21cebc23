from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heald_compaction.selection import length, older
from heald_session import (
    AssistantMessage,
    Message,
    Seq,
    Shown,
    ToolCall,
    ToolResult,
    UserMessage,
    balanced,
)

ids = st.sampled_from("abc")
said = st.text("xy", max_size=5)
messages: st.SearchStrategy[Message | None] = st.one_of(
    st.none(),
    st.builds(UserMessage, ids, said),
    st.builds(ToolResult, ids, st.just("tool"), said),
    st.builds(
        lambda text, calls: AssistantMessage(text, [ToolCall(c, "tool", {}) for c in calls]),
        said,
        st.lists(ids, max_size=2),
    ),
)
surfaces = st.lists(messages, max_size=12).map(
    lambda found: [Shown(Seq(n), message) for n, message in enumerate(found)]
)


def spoken(shown: list[Shown]) -> list[Message]:
    return [place.message for place in shown if place.message is not None]


@given(surfaces, st.integers(0, 30))
def test_what_stays_is_short_enough_and_begins_where_somebody_spoke(
    shown: list[Shown], kept: int
) -> None:
    replaced = older(shown, kept)
    stays = shown[len(replaced) :]
    assert [*replaced, *stays] == shown
    assert sum(length(place.message) for place in stays) <= kept
    assert not stays or isinstance(stays[0].message, UserMessage)


@given(surfaces, st.integers(0, 30))
def test_no_result_is_parted_from_its_call(shown: list[Shown], kept: int) -> None:
    replaced = older(shown, kept)
    stays = spoken(shown[len(replaced) :])
    results = [m for m in balanced(stays) if isinstance(m, ToolResult)]
    for result in (m for m in stays if isinstance(m, ToolResult)):
        calls = [c.id for m in stays if isinstance(m, AssistantMessage) for c in m.tool_calls]
        assert result.call_id in calls
    assert len(results) == sum(len(m.tool_calls) for m in stays if isinstance(m, AssistantMessage))


@given(surfaces)
def test_nothing_is_replaced_of_what_is_short_enough_and_begins_with_somebody(
    shown: list[Shown],
) -> None:
    turn = [Shown(Seq(len(shown)), UserMessage("u", "hello"))]
    assert older([*shown, *turn], 5)[len(shown) :] == []
    assert older(turn, 4) == turn
