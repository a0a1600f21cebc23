"""How long a child worked: turns from its last descriptor on."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from heald_session import Event, Header, LogOffset, Seq, SessionId
from heald_subagent.timing import TIMING, Timing, TimingState

HEADER = Header(version=1, id=SessionId("child"), log_id="x", created_at=1)
DESCRIPTOR, START, END = "subagent/descriptor", "turn/start", "turn/end"
OTHER = "user/message"


def view(*events: tuple[str, int]) -> Any:
    """Fold events of a type at a time, and return what clients see."""
    state = TIMING.initial(HEADER, LogOffset(0))
    for seq, (type_, time) in enumerate(events):
        event = Event(Seq(seq), type_, time, msgspec.Raw(b"{}"))
        state = TIMING.apply(state, event)
    assert TIMING.view is not None
    return TIMING.view(state)


def test_a_child_without_turns_has_settled_nothing() -> None:
    assert view((DESCRIPTOR, 5)) == {"settled_ms": 0}


def test_a_session_without_a_descriptor_counts_no_turn() -> None:
    assert view((START, 1), (END, 9)) == view((START, 1)) == {"settled_ms": 0}


def test_each_ended_turn_adds_how_long_it_took() -> None:
    assert view((DESCRIPTOR, 0), (START, 1), (END, 4), (START, 10), (END, 15)) == {"settled_ms": 8}


def test_each_descriptor_begins_the_sum_anew() -> None:
    ancestor = [(DESCRIPTOR, 0), (START, 1), (END, 100)]
    assert view(*ancestor, (DESCRIPTOR, 101), (START, 102), (END, 104)) == {"settled_ms": 2}


def test_a_turn_that_is_open_at_the_descriptor_counts_from_its_own_start() -> None:
    assert view((START, 10), (DESCRIPTOR, 15), (END, 30)) == {"settled_ms": 20}


def test_an_open_turn_is_active_through_its_last_event() -> None:
    shown = view((DESCRIPTOR, 0), (START, 3), (OTHER, 7), (OTHER, 7), (OTHER, 9))
    assert shown == {"settled_ms": 0, "active": {"started_at": 3, "through": 9}}


def test_an_event_between_turns_changes_nothing() -> None:
    assert view((DESCRIPTOR, 0), (START, 1), (END, 2), (OTHER, 50), (END, 60)) == {"settled_ms": 1}


def test_a_clock_that_ran_backwards_takes_nothing_away() -> None:
    assert view((DESCRIPTOR, 0), (START, 10), (END, 4)) == {"settled_ms": 0}


@given(
    st.lists(st.tuples(st.sampled_from([DESCRIPTOR, START, END, OTHER]), st.integers(0, 10**13)))
)
def test_whatever_is_logged_state_and_view_fit_their_schemas(events: list[tuple[str, int]]) -> None:
    state = TIMING.initial(HEADER, LogOffset(0))
    for seq, (type_, time) in enumerate(events):
        state = TIMING.apply(state, Event(Seq(seq), type_, time, msgspec.Raw(b"{}")))
    msgspec.convert(state, TimingState)
    assert msgspec.convert(view(*events), Timing)["settled_ms"] >= 0
