"""`asks` and `modelSelection` fold whatever a log holds, and never raise."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from heald_agent.projection import ASKS, MODEL_SELECTION
from heald_projection import Unit
from heald_session import Event, Header, LogOffset, Seq, SessionId

HEADER = Header(version=1, id=SessionId("a"), log_id="l", created_at=0)
IDS = st.sampled_from(["a", "b"])
OPENED = st.fixed_dictionaries(
    {
        "id": IDS,
        "kind": st.sampled_from(["question", "approval"]),
        "text": st.text(max_size=3),
        "deadline": st.integers(0, 9),
    },
    optional={"options": st.lists(st.text(max_size=2), max_size=2), "action": st.none()},
)
DECIDED = st.fixed_dictionaries(
    {"ask": IDS, "outcome": st.sampled_from(["denied", "expired"]), "by": st.just("x")}
)
BROKEN: Any = st.sampled_from([None, [], {}, 3, "x", {"id": 3}, {"ask": ["a"]}, {"model": 1}])
EVENTS = st.lists(
    st.tuples(st.just("ask/opened"), OPENED | BROKEN)
    | st.tuples(st.just("ask/decided"), DECIDED | BROKEN)
    | st.tuples(st.just("model/selected"), st.fixed_dictionaries({"model": IDS}) | BROKEN),
    max_size=10,
)


def folded(unit: Unit, cut: int, events: Any) -> Any:
    state = unit.initial(HEADER, LogOffset(cut))
    for seq, (kind, data) in enumerate(events):
        if unit.event_types is not None and kind in unit.event_types:
            event = Event(Seq(seq), kind, 1, msgspec.Raw(msgspec.json.encode(data)))
            state = unit.apply(state, event)
            msgspec.convert(state, unit.state_schema)
            stored = msgspec.json.decode(msgspec.json.encode(state))
            assert stored == state
            assert unit.view is not None
            msgspec.convert(unit.view(state), unit.view_schema)
    assert unit.view is not None
    return unit.view(state)


def well_formed(data: Any, *keys: str) -> bool:
    return isinstance(data, dict) and set(keys) <= set(data) and len(data) > 1


@given(events=EVENTS, cut=st.integers(0, 4))
def test_the_open_ask_is_the_last_own_one_that_is_not_decided(events: Any, cut: int) -> None:
    expected = None
    for kind, data in events[cut:]:
        if kind == "ask/opened" and well_formed(data, "id", "kind"):
            expected = data["id"]
        if kind == "ask/decided" and well_formed(data, "ask", "by") and data["ask"] == expected:
            expected = None
    shown = folded(ASKS, cut, events)
    assert (shown and shown["id"]) == expected


@given(events=EVENTS, cut=st.integers(0, 4))
def test_the_model_is_the_last_that_was_chosen_inherited_or_not(events: Any, cut: int) -> None:
    chosen = [
        data["model"]
        for kind, data in events
        if kind == "model/selected" and isinstance(data, dict) and data.get("model") in ("a", "b")
    ]
    assert folded(MODEL_SELECTION, cut, events) == (chosen[-1] if chosen else None)
