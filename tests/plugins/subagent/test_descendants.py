"""The listing of a whole tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from heald_query import SessionRecord
from heald_session import FORMAT_VERSION, Header, SessionId
from heald_subagent import ChildRow, DiagnosticRow

if TYPE_CHECKING:
    from tests.plugins.subagent.conftest import World


def one_shot(label: str | None = None) -> dict[str, Any]:
    descriptor: dict[str, Any] = {"version": 2, "mode": "one-shot", "provider": "spawn"}
    return descriptor if label is None else descriptor | {"label": label}


def continuable(label: str = "helper") -> dict[str, Any]:
    return {"version": 2, "mode": "continuable", "provider": "spawn", "label": label}


def places(rows: list[Any]) -> list[tuple[Any, ...]]:
    return [(row.id, row.parent_id, row.depth) for row in rows]


async def test_a_tree_is_listed_parents_first_with_parent_and_depth(world: World) -> None:
    await world.child("a", continuable(), created_at=1, live=False)
    await world.child("b", continuable(), created_at=2)
    await world.child("ab", continuable(), parent="a", created_at=4)
    await world.child("aa", continuable(), parent="a", created_at=3)
    rows = await world.descendants()
    tree = [("a", "parent", 1), ("aa", "a", 2), ("ab", "a", 2), ("b", "parent", 1)]
    assert places(rows) == tree
    assert [row.has_children for row in rows] == [True, False, False, False]


async def test_a_session_without_descendants_has_none(world: World) -> None:
    await world.session("parent")
    assert await world.descendants() == []


async def test_a_live_node_that_is_still_being_created_is_left_out_and_its_child_listed(
    world: World,
) -> None:
    await world.child("a")
    await world.child("aa", continuable(), parent="a", live=False)
    assert places(await world.descendants()) == [("aa", "a", 2)]


async def test_a_cycle_ends_and_the_root_is_never_a_row(world: World) -> None:
    await world.session("parent", parent="a", live=False)
    await world.child("a", continuable(), live=False)
    rows = await world.descendants()
    assert places(rows) == [("a", "parent", 1)]
    assert rows[0].has_children is False


async def test_a_cycle_below_the_root_is_walked_once(world: World) -> None:
    await world.child("a", continuable(), live=False)

    def cyclic(records: Any) -> Any:
        header = next(iter(records)).header
        more = [
            msgspec.structs.replace(header, id=SessionId(ident), parent_session=SessionId(parent))
            for ident, parent in (("x", "y"), ("y", "x"))
        ]
        return [*records, *(SessionRecord(h.id, h, live=False, stored=True) for h in more)]

    world.spies.records = cyclic
    assert [row.id for row in await world.descendants()] == ["a"]
    assert [row.id for row in await world.descendants("x")] == ["y"]


async def test_ten_thousand_ordinary_sessions_deep_a_leaf_is_found(world: World) -> None:
    depth = 10_000
    await world.child("leaf", continuable(), parent=f"n{depth - 1}", live=False)

    def chain(records: Any) -> Any:
        ordinary = [
            Header(
                version=FORMAT_VERSION,
                id=SessionId(f"n{n}"),
                log_id=f"log {n}",
                created_at=n,
                parent_session=SessionId("parent" if n == 1 else f"n{n - 1}"),
            )
            for n in range(1, depth)
        ]
        return [*(SessionRecord(h.id, h, live=False, stored=True) for h in ordinary), *records]

    world.spies.records = chain
    assert places(await world.descendants()) == [("leaf", f"n{depth - 1}", depth)]


async def test_ordinary_forks_and_one_shots_are_walked_through(world: World) -> None:
    await world.session("fork", parent="parent", created_at=1, live=False)
    await world.child("below fork", continuable(), parent="fork", created_at=2, live=False)
    await world.child("errand", one_shot(), created_at=3, live=False)
    await world.child("below errand", continuable(), parent="errand", created_at=4)
    assert places(await world.descendants()) == [
        ("below fork", "fork", 2),
        ("errand", "parent", 1),
        ("below errand", "errand", 2),
    ]


async def check_that_a_node_between_two_others_is_corrupt(world: World, *descriptors: Any) -> None:
    """Give it these descriptors; it is to have its place, and to hide nothing below it."""
    await world.child("a", continuable(), created_at=1, live=False)
    await world.child("aa", *descriptors, parent="a", created_at=2, live=False)
    await world.child("aaa", continuable(), parent="aa", created_at=3, live=False)
    rows = await world.descendants()
    assert places(rows) == [("a", "parent", 1), ("aa", "a", 2), ("aaa", "aa", 3)]
    assert rows[1] == DiagnosticRow(
        id=SessionId("aa"), reason="corrupt", parent_id=SessionId("a"), depth=2
    )


async def test_a_settled_node_without_descriptor_is_corrupt_in_its_place_and_hides_nothing(
    world: World,
) -> None:
    await check_that_a_node_between_two_others_is_corrupt(world)


async def test_a_node_of_an_unknown_version_is_corrupt_in_its_place_and_hides_nothing(
    world: World,
) -> None:
    await check_that_a_node_between_two_others_is_corrupt(world, {"version": 3})


async def test_an_observation_with_another_parent_is_corrupt_in_its_place(world: World) -> None:
    await world.child("a", continuable("stolen"), live=False)
    world.spies.cache = lambda _: None
    world.spies.header = lambda h: msgspec.structs.replace(h, parent_session=SessionId("other"))
    assert await world.descendants() == [
        DiagnosticRow(id=SessionId("a"), reason="corrupt", parent_id=SessionId("parent"), depth=1)
    ]


async def test_rows_of_a_tree_have_their_place_in_their_json(world: World) -> None:
    await world.child("a", continuable())
    (row,) = await world.descendants()
    assert isinstance(row, ChildRow)
    assert msgspec.to_builtins(row) == {
        "kind": "child",
        "id": "a",
        "activity": "running",
        "has_children": False,
        "mode": "continuable",
        "label": "helper",
        "parent_id": "parent",
        "depth": 1,
    }
