"""Descriptors: what is one, and that nothing else ever counts."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import heald_subagent
from heald_session import Event, Header, LogOffset, Seq, SessionId
from heald_subagent.descriptor import DESCRIPTOR_TYPE, LARGEST, Continuable, OneShot, parse
from heald_subagent.identity import IDENTITY, identity_from

HEADER = Header(version=1, id=SessionId("child"), log_id="x", created_at=1)
ONE_SHOT = {"version": 2, "mode": "one-shot", "provider": "spawn"}
CONTINUABLE = {"version": 2, "mode": "continuable", "provider": "spawn", "label": "helper"}
FULL = CONTINUABLE | {
    "agent_provider": "openai",
    "model": "a:b",
    "persona": "You are brief.",
    "denied_tools": ["shell", "write"],
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def event(data: Any, seq: int = 0, *, encoded: bytes | None = None) -> Event:
    raw = msgspec.json.encode(data) if encoded is None else encoded
    return Event(seq=Seq(seq), type=DESCRIPTOR_TYPE, time=1, encoded=msgspec.Raw(raw))


def fold(*events: Event) -> Any:
    state = IDENTITY.initial(HEADER, LogOffset(0))
    for one in events:
        state = IDENTITY.apply(state, one)
    return state


def view(state: Any) -> Any:
    assert IDENTITY.view is not None
    return IDENTITY.view(state)


@pytest.mark.parametrize("data", [ONE_SHOT, ONE_SHOT | {"label": "x"}, CONTINUABLE, FULL])
def test_a_descriptor_folds_to_the_whole_of_itself_and_its_seq(data: dict[str, Any]) -> None:
    state = fold(event(data, 7))
    assert state == {"identity": data | {"seq": 7}}
    assert msgspec.to_builtins(identity_from(state, LogOffset(7))) == data | {"seq": 7}
    assert identity_from(state, LogOffset(8)) is None


def test_the_view_is_mode_label_and_seq_and_nothing_else() -> None:
    assert view(fold(event(FULL, 3))) == {"mode": "continuable", "label": "helper", "seq": 3}
    assert view(fold(event(ONE_SHOT, 4))) == {"mode": "one-shot", "seq": 4}
    assert view(fold()) is None


MALFORMED: dict[str, Any] = {
    "null": None,
    "an array": [ONE_SHOT],
    "a text": "one-shot",
    "a number": 2,
    "an empty object": {},
    "no version": {"mode": "one-shot", "provider": "spawn"},
    "no mode": {"version": 2, "provider": "spawn"},
    "no provider": {"version": 2, "mode": "one-shot"},
    "another mode": ONE_SHOT | {"mode": "eternal"},
    "a mode of the wrong type": ONE_SHOT | {"mode": 1},
    "version 1": ONE_SHOT | {"version": 1},
    "version 3": ONE_SHOT | {"version": 3},
    "version true": ONE_SHOT | {"version": True},
    "version 2.0": ONE_SHOT | {"version": 2.0},
    "version as text": ONE_SHOT | {"version": "2"},
    "a provider of the wrong type": ONE_SHOT | {"provider": None},
    "a label of the wrong type": ONE_SHOT | {"label": 5},
    "a null label": ONE_SHOT | {"label": None},
    "a continuable without label": {k: v for k, v in CONTINUABLE.items() if k != "label"},
    "a continuable with a null label": CONTINUABLE | {"label": None},
    "an unknown field": ONE_SHOT | {"colour": "red"},
    "a continuable's field in a one-shot": ONE_SHOT | {"persona": "x"},
    "a model of the wrong type": FULL | {"model": 1},
    "denied tools of the wrong type": FULL | {"denied_tools": "shell"},
    "a denied tool of the wrong type": FULL | {"denied_tools": [1]},
    "a huge label": ONE_SHOT | {"label": "x" * LARGEST},
    "a huge unknown field": ONE_SHOT | {"x": "x" * 10_000_000},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_not_exactly_a_descriptor_folds_to_no_identity(name: str) -> None:
    assert fold(event(MALFORMED[name])) == {}


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"{",
        b'{"version":2,"mode":"one-shot","provider":"\xff"}',
        b'{"version":2,"mode":"one-shot","provider":"spawn","label":"\\ud800"}',
        b'{"mode":"one-shot","version":2,"provider":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
        b"[" * 60_000,
    ],
    ids=["nothing", "cut short", "not utf-8", "lone surrogate", "deep", "unclosed"],
)
def test_bytes_that_are_no_json_fold_to_no_identity(encoded: bytes) -> None:
    assert fold(event(None, encoded=encoded)) == {}


@given(JSON)
def test_the_fold_never_raises_whatever_the_data(data: Any) -> None:
    state = fold(event(CONTINUABLE), event(data, 1))
    assert state == {}
    assert view(state) is None


def test_the_last_descriptor_counts() -> None:
    state = fold(event(ONE_SHOT), event(CONTINUABLE, 1), event(CONTINUABLE | {"label": "new"}, 2))
    assert view(state) == {"mode": "continuable", "label": "new", "seq": 2}


def test_a_malformed_descriptor_takes_the_earlier_identity_away() -> None:
    assert fold(event(CONTINUABLE), event(CONTINUABLE | {"version": 3}, 1)) == {}


def test_a_malformed_descriptor_that_changes_nothing_returns_the_same_state() -> None:
    state = fold()
    assert IDENTITY.apply(state, event(None)) is state


@given(st.lists(st.sampled_from([ONE_SHOT, CONTINUABLE, FULL, None, {"version": 2}]), max_size=6))
def test_every_state_and_view_fits_its_schema_and_survives_json(descriptors: list[Any]) -> None:
    state = fold(*(event(data, seq) for seq, data in enumerate(descriptors)))
    again = msgspec.json.decode(msgspec.json.encode(state))
    assert again == state
    msgspec.convert(again, IDENTITY.state_schema)
    msgspec.convert(view(state), IDENTITY.view_schema)


def test_what_we_write_is_what_we_read() -> None:
    written = Continuable(version=2, provider="spawn", label="x", denied_tools=["a"])
    assert parse(msgspec.Raw(msgspec.json.encode(written))) == written
    assert msgspec.to_builtins(OneShot(version=2, provider="spawn")) == ONE_SHOT


def test_only_the_unit_reads_descriptors() -> None:
    """Everything else that wants to know what a child is asks the projection."""
    readers = set()
    for path in Path(heald_subagent.__file__).parents[1].glob("heald_*/**/*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "heald_subagent.descriptor"
            for alias in node.names
        }
        if DESCRIPTOR_TYPE in texts or "parse" in imported:
            readers.add(f"{path.parent.name}/{path.name}")
    # The importer writes another system's descriptors in our words; it reads none of ours.
    translator = "heald_transfer/meanings.py"
    assert readers == {"heald_subagent/descriptor.py", "heald_subagent/identity.py", translator}
