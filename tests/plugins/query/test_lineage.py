"""Trees of sessions, whatever their headers claim."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heald_query import SessionRecord
from heald_query.lineage import lineage
from heald_session import Header, SessionId


def record(id: str, parent: str | None, *, seeded: bool = False) -> SessionRecord:  # noqa: A002
    header = Header(
        version=1,
        id=SessionId(id),
        log_id=id,
        created_at=0,
        parent_session=None if parent is None else SessionId(parent),
        is_seeded=seeded,
    )
    return SessionRecord(SessionId(id), header, live=False, stored=True)


@given(st.dictionaries(st.integers(0, 8), st.integers(0, 9) | st.none(), max_size=9))
def test_every_session_is_there_once_and_below_its_parent(parents: dict[int, int | None]) -> None:
    records = [record(str(id_), None if p is None else str(p)) for id_, p in parents.items()]
    nodes = lineage(records)
    assert sorted(node.record.id for node in nodes) == sorted(one.id for one in records)
    line: list[str] = []
    for node in nodes:
        del line[node.depth :]
        header = node.record.header
        assert header is not None
        if line:
            assert header.parent_session == line[-1]
        elif header.parent_session is not None:
            assert node.remark is not None
        line.append(node.record.id)


def test_a_chain_of_ten_thousand_is_no_deeper_than_any_other() -> None:
    records = [record(str(n), str(n - 1) if n else None) for n in range(10_000)]
    nodes = lineage(records)
    assert [node.depth for node in nodes] == list(range(10_000))
    assert len(lineage(records, SessionId("9000"))) == 1000


def test_what_a_session_is_to_its_parent_is_told() -> None:
    nodes = lineage([record("a", None), record("b", "a", seeded=True), record("c", "gone")])
    assert [(node.record.id, node.relation, node.remark) for node in nodes] == [
        ("a", None, None),
        ("b", "fork", None),
        ("c", "child", "its parent gone is not here"),
    ]


def test_one_of_a_circle_stands_at_the_top() -> None:
    nodes = lineage([record("a", "b"), record("b", "a"), record("c", "c")])
    assert [(node.record.id, node.depth, node.remark) for node in nodes] == [
        ("a", 0, "its parents form a circle"),
        ("b", 1, None),
        ("c", 0, "its parents form a circle"),
    ]
