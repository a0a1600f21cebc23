"""Trees of sessions, whatever their headers claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald import Host
from heald_query import SessionRecord, session_query
from heald_query.lineage import lineage, relatives_of
from heald_session import Header, SessionId, SessionNotFound, session_store

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


def record(id: str, parent: str | None = None, *, seeded: bool = False) -> SessionRecord:  # noqa: A002
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


def ids(records: Sequence[SessionRecord]) -> list[str]:
    return [record.id for record in records]


def test_relatives_are_ancestors_from_the_parent_on_and_descendants_below_their_parents() -> None:
    records = [
        record("a"),
        record("b", "a"),
        record("c", "b"),
        record("d", "c"),
        record("e", "b"),
        record("x"),
    ]
    found = relatives_of(records, SessionId("b"))
    assert (ids(found.ancestors), found.missing) == (["a"], None)
    assert ids(found.descendants) == ["c", "d", "e"]
    found = relatives_of(records, SessionId("d"))
    assert (ids(found.ancestors), ids(found.descendants)) == (["c", "b", "a"], [])


def test_an_ancestor_that_is_not_here_is_named() -> None:
    records = [record("b", "gone"), record("c", "b")]
    found = relatives_of(records, SessionId("c"))
    assert (ids(found.ancestors), found.missing) == (["b"], "gone")


def test_a_circle_of_parents_ends_and_shows_each_session_once() -> None:
    records = [record("a", "c"), record("b", "a"), record("c", "b"), record("own", "own")]
    found = relatives_of(records, SessionId("b"))
    assert (ids(found.ancestors), found.missing) == (["a", "c"], None)
    assert ids(found.descendants) == ["c", "a"]
    found = relatives_of(records, SessionId("own"))
    assert (ids(found.ancestors), found.missing, ids(found.descendants)) == ([], None, [])


def test_ten_thousand_levels_are_no_trouble() -> None:
    records = [record("s0"), *(record(f"s{n}", f"s{n - 1}") for n in range(1, 10_000))]
    for middle in (0, 5_000, 9_999):
        found = relatives_of(records, SessionId(f"s{middle}"))
        assert (len(found.ancestors), len(found.descendants)) == (middle, 9_999 - middle)


def test_a_session_that_is_not_here_has_no_relatives() -> None:
    with pytest.raises(SessionNotFound, match="did you mean 'one'"):
        relatives_of([record("one")], SessionId("onr"))


async def test_the_service_tells_relatives_live_and_stored_with_what_is_known_of_them(
    open_rows: OpenHost,
) -> None:
    async with open_rows() as host:
        store, query = host.scope.require(session_store), host.scope.require(session_query)
        root = await store.create(cwd=None, id=SessionId("root"))
        root.append("turn/start", {"turn": 1})
        root.append("turn/end", {"turn": 1, "outcome": "completed"})
        await root.flush()
        fork = await store.fork(root.id, id=SessionId("fork"))
        fork.append("session/renamed", {"title": "Mine"})
        await store.dispose(fork)
        found = await query.relatives(fork.id, keys=["sessionStats"])
        (parent,) = found.ancestors
        assert (parent.id, parent.live) == ("root", True)
        assert parent.projections is not None
        assert parent.projections.values["sessionStats"]["turns"] == 1
        (child,) = (await query.relatives(root.id, keys=["title"])).descendants
        assert (child.live, child.projections and child.projections.values) == (
            False,
            {"title": {"text": "Mine"}},
        )
