"""Data that JSON would not give back unchanged is refused, with the path to it."""

from __future__ import annotations

import enum
import json
import math
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald import Host
from heald_session import AssistantMessage, DataNotJson, ToolCall, session_store
from heald_session.lossless import encoded


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Colour(enum.StrEnum):
    RED = "red"


class Pair(NamedTuple):
    a: int


LOOP: dict[str, Any] = {}
LOOP["again"] = [LOOP]
DEEP: list[Any] = []
for _ in range(1000):
    DEEP = [DEEP]

BAD = {
    "nan": math.nan,
    "infinity": math.inf,
    "negative infinity": -math.inf,
    "big integer": 2**53 + 1,
    "small integer": -(2**53) - 1,
    "lone surrogate": "a\ud800",
    "key surrogate": {"\udfff": 1},
    "cycle": LOOP,
    "depth": DEEP,
    "number as key": {1: 2},
    "nothing as key": {None: 1},
    "subclass as key": {Text("a"): 1},
    "tuple": (1, 2),
    "named tuple": Pair(1),
    "set": {1},
    "frozen set": frozenset({1}),
    "bytes": b"a",
    "text subclass": Text("a"),
    "number subclass": Number(1),
    "enum": Colour.RED,
    "mapping subclass": OrderedDict(a=1),
    "path": Path("a"),
    "date": datetime.now(UTC),
    "decimal": Decimal(1),
    "complex": 1j,
    "object": object(),
    "class": int,
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
async def test_what_is_not_json_is_refused_with_the_path_to_it(host: Host, bad: object) -> None:
    session = await host.scope.require(session_store).create(cwd=None)
    data = {"ok": [0, {"a b": bad}]}
    with pytest.raises(DataNotJson, match="plain JSON values") as refused:
        session.append("acme/anything", data)
    assert refused.value.path.startswith('data.ok[1]["a b"]')
    assert refused.value.code == "DATA_NOT_JSON"
    assert session.end == 0


def test_the_path_leads_all_the_way() -> None:
    with pytest.raises(DataNotJson, match=r"^data\.a\[2\]\.b: tuple"):
        encoded({"a": [1, 2, {"b": ()}]})
    with pytest.raises(DataNotJson, match=r"^data: "):
        encoded(math.nan)


def test_what_a_struct_holds_is_looked_at_too() -> None:
    for bad in (math.nan, 2**60, "\ud800", LOOP):
        with pytest.raises(DataNotJson, match="data"):
            encoded(AssistantMessage("", [ToolCall("c", "t", {"x": bad})]))


def test_a_struct_inside_plain_data_is_refused() -> None:
    with pytest.raises(DataNotJson, match=r"data\.x: ToolCall"):
        encoded({"x": ToolCall("c", "t", {})})


def test_the_same_value_twice_is_no_cycle() -> None:
    shared = {"a": [1]}
    assert encoded([shared, shared, [shared]]) == b'[{"a":[1]},{"a":[1]},[{"a":[1]}]]'


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(json_values)
def test_what_is_accepted_comes_back_equal_in_value_and_kind(value: Any) -> None:
    text = encoded(value)
    for back in (msgspec.json.decode(text), json.loads(text)):
        assert repr(back) == repr(value)
