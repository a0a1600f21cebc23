"""What is different between two lists of rows."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from heald import FieldChange, Layer, Row, RowChange, differences, stack


def rows(*tables: Mapping[str, object], layer: str = "a.toml") -> tuple[Row, ...]:
    """Return the rows that tables come to."""
    return stack([Layer(layer, tables)], {"X": "filled"}).rows


def test_equal_rows_have_no_difference() -> None:
    table = {"id": "a", "plugin": "p", "config": {"x": {"y": 1}}}

    assert differences(rows(table), rows(table, layer="b.toml")) == ()


def test_a_row_that_is_in_one_list_only_is_there_with_every_field() -> None:
    one = rows({"id": "a", "plugin": "p", "disabled": True, "config": {"x": {"y": 1}, "z": {}}})
    fields = [("plugin", "p"), ("disabled", True), ("config.x.y", 1), ("config.z", {})]

    assert differences((), one) == (
        RowChange("a", "added", tuple(FieldChange(f, None, v, None, "a.toml") for f, v in fields)),
    )
    assert differences(one, ()) == (
        RowChange(
            "a", "removed", tuple(FieldChange(f, v, None, "a.toml", None) for f, v in fields)
        ),
    )


def test_a_changed_row_says_which_fields_are_and_who_wrote_each() -> None:
    old = rows({"id": "a", "plugin": "p", "config": {"same": 1, "x": 1, "gone": 2}})
    new = rows({"id": "a", "plugin": "q", "config": {"same": 1, "x": 3}}, layer="b.toml")

    assert differences(old, new) == (
        RowChange(
            "a",
            "changed",
            (
                FieldChange("plugin", "p", "q", "a.toml", "b.toml"),
                FieldChange("config.x", 1, 3, "a.toml", "b.toml"),
                FieldChange("config.gone", 2, None, "a.toml", None),
            ),
        ),
    )


def test_the_environment_is_compared_as_it_is_written() -> None:
    old = rows({"id": "a", "plugin": "p", "config": {"x": "${env:X}"}})
    new = rows({"id": "a", "plugin": "p", "config": {"x": "filled"}})

    (change,) = differences(old, new)

    assert change.fields == (FieldChange("config.x", "${env:X}", "filled", "a.toml", "a.toml"),)


def test_a_moved_row_says_what_it_stands_behind() -> None:
    a, b, c = ({"id": id_, "plugin": "p"} for id_ in "abc")

    assert differences(rows(a, b, c), rows(c, a, b)) == (
        RowChange("c", "changed", (FieldChange("after", "b", None, None, None),)),
    )


TABLE = st.fixed_dictionaries(
    {
        "plugin": st.sampled_from("pq"),
        "config": st.dictionaries(st.sampled_from("xy"), st.booleans()),
    }
)
LIST = st.dictionaries(st.sampled_from("abcd"), TABLE).flatmap(
    lambda tables: st.permutations([{"id": id_, **table} for id_, table in tables.items()])
)


@given(LIST, LIST)
def test_there_is_a_difference_exactly_if_the_lists_differ(
    old: list[dict[str, object]], new: list[dict[str, object]]
) -> None:
    assert (differences(rows(*old), rows(*new)) == ()) == (old == new)
