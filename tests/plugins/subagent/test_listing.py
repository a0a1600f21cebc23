"""The listing of children: which there are, what each is, and in what order."""

from __future__ import annotations

import ast
import asyncio
import hashlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import msgspec
import pytest

from heald import Cancelled, Row
from heald_projection import Projections, Snapshot, projections
from heald_projection.plugin import ProjectionPlugin
from heald_projection_cache import ProjectionCache
from heald_query import Observation, SessionQuery, SessionRecord
from heald_session import (
    Header,
    LogOffset,
    NewEvent,
    Session,
    SessionId,
    SessionStore,
    Surface,
)
from heald_session.live import LiveSession
from heald_session.testing import append_unchecked
from heald_subagent import (
    ChildRow,
    DiagnosticRow,
    descriptor,
    ladder,
    listing,
    rows,
    services,
    workers,
)
from heald_subagent.errors import SubagentProjectionsUnavailable
from heald_subagent.ladder import WITNESS

if TYPE_CHECKING:
    from tests.plugins.subagent.conftest import OpenWorld, World


def one_shot(label: str | None = None) -> dict[str, Any]:
    descriptor: dict[str, Any] = {"version": 2, "mode": "one-shot", "provider": "spawn"}
    return descriptor if label is None else descriptor | {"label": label}


def continuable(label: str = "helper") -> dict[str, Any]:
    return {"version": 2, "mode": "continuable", "provider": "spawn", "label": label}


def child(ident: str, activity: str = "inactive", label: str | None = "helper", **more: Any) -> Any:
    fields: dict[str, Any] = {"mode": "continuable", "has_children": False} | more
    shown: Any = activity
    return ChildRow(id=SessionId(ident), activity=shown, label=label, **fields)


def running(ident: str, label: str = "helper") -> Any:
    return child(ident, "running", label)


def corrupt(ident: str, **more: Any) -> Any:
    return DiagnosticRow(id=SessionId(ident), reason="corrupt", **more)


def unavailable(ident: str, **more: Any) -> Any:
    return DiagnosticRow(id=SessionId(ident), reason="unavailable", **more)


async def test_one_live_child_without_persistence_is_one_running_continuable_row(
    open_world: OpenWorld,
) -> None:
    async with open_world(without=["persistence", "projection-cache"]) as world:
        await world.child("a", continuable())
        assert await world.children() == [child("a", "running")]


async def test_a_stored_continuable_child_is_inactive_with_its_durable_label(world: World) -> None:
    await world.child("a", continuable("reader"), live=False)
    assert await world.children() == [child("a", label="reader")]


async def test_a_one_shot_without_label_has_no_label_key_in_its_json(world: World) -> None:
    await world.child("a", one_shot(), live=False)
    await world.child("b", continuable())
    rows = await world.children()
    assert rows == [child("a", mode="one-shot", label=None), child("b", "running")]
    assert msgspec.json.decode(msgspec.json.encode(rows)) == [
        {
            "kind": "child",
            "id": "a",
            "activity": "inactive",
            "has_children": False,
            "mode": "one-shot",
        },
        {
            "kind": "child",
            "id": "b",
            "activity": "running",
            "has_children": False,
            "mode": "continuable",
            "label": "helper",
        },
    ]


async def test_the_child_of_a_parent_that_exists_only_in_storage_is_listed(world: World) -> None:
    await world.session("parent", live=False)
    await world.child("a", continuable(), live=False)
    assert await world.children() == [child("a")]
    assert world.store.live() == ()


async def test_children_are_in_order_of_creation_then_id_and_an_ordinary_fork_is_absent(
    world: World,
) -> None:
    await world.session("parent", live=False)
    await world.child("late", continuable(), created_at=9)
    await world.child("tie b", continuable(), created_at=5, live=False)
    await world.child("tie a", continuable(), created_at=5)
    fork = await world.store.fork(SessionId("parent"), id=SessionId("fork"), cut=LogOffset(0))
    append_unchecked(fork, "subagent/descriptor", continuable())
    assert [row.id for row in await world.children()] == ["tie a", "tie b", "late"]


async def test_a_live_child_without_descriptor_is_left_out(world: World) -> None:
    await world.child("a")
    assert await world.children() == []


async def test_a_stored_one_shot_keeps_its_label(world: World) -> None:
    await world.child("a", one_shot("errand"), live=False)
    assert await world.children() == [child("a", mode="one-shot", label="errand")]


async def test_settled_and_live_children_are_listed_together(world: World) -> None:
    await world.child("a", continuable(), created_at=1, live=False)
    await world.child("b", continuable(), created_at=2)
    assert await world.children() == [child("a"), child("b", "running")]


@pytest.mark.parametrize("live", [True, False])
async def test_of_two_valid_descriptors_the_last_label_counts(world: World, live: bool) -> None:  # noqa: FBT001
    await world.child("a", continuable("first"), continuable("last"), created_at=1, live=live)
    await world.child("b", continuable("other"), created_at=2)
    assert [row.label for row in await world.children()] == ["last", "other"]


async def test_a_live_child_whose_descriptor_becomes_malformed_is_left_out(world: World) -> None:
    session = await world.child("a", continuable())
    folds = world.host.scope.require(projections)
    assert folds.snapshot(session, ["subagent"]).values["subagent"]["label"] == "helper"
    append_unchecked(session, "subagent/descriptor", {"version": 2})
    values = msgspec.json.decode(msgspec.json.encode(folds.snapshot(session, ["subagent"]).values))
    assert values == {"subagent": None}
    assert await world.children() == []


async def test_a_settled_child_whose_descriptor_became_malformed_is_corrupt(world: World) -> None:
    await world.child("a", continuable(), {"version": 2}, live=False)
    assert await world.children() == [corrupt("a")]


async def test_an_unseeded_cold_child_is_taken_from_the_cache_without_observation(
    world: World,
) -> None:
    await world.child("a", continuable(), live=False)
    assert await world.children() == [child("a")]
    assert world.spies.cached == ["a"]
    assert world.spies.observed == []


async def test_a_seeded_cold_child_never_asks_the_cache_and_is_observed_once(
    world: World,
) -> None:
    await world.child("old", continuable("ancestor"), parent="elsewhere", live=False)
    await world.fork("old", "a", continuable("own"), live=False)
    served = {"mode": "continuable", "label": "ancestor", "seq": 0}
    world.spies.cache = lambda _: Snapshot(0, {"subagent": served})
    assert await world.children() == [child("a", label="own")]
    assert world.spies.cached == []
    assert world.spies.observed == ["a"]


def differing(header: Header, fact: str) -> Header:
    value = getattr(header, fact)
    changed = {bool: True, int: 77, str: "other", type(None): "other"}[type(value)]
    return msgspec.structs.replace(header, **{fact: changed})


@pytest.mark.parametrize("fact", WITNESS)
async def test_an_observation_that_differs_in_one_witness_is_corrupt_and_its_sibling_is_listed(
    world: World, fact: str
) -> None:
    await world.child("a", continuable("stolen"), created_at=1, live=False)
    await world.child("b", continuable(), created_at=2, live=False)
    world.spies.cache = lambda _: None
    world.spies.header = lambda h: differing(h, fact) if h.id == "a" else h
    rows = await world.children()
    assert rows == [corrupt("a"), child("b")]
    assert b"stolen" not in msgspec.json.encode(rows)


def test_the_witness_is_every_fact_of_the_header() -> None:
    assert set(WITNESS) == set(Header.__struct_fields__)
    assert len(WITNESS) == 10


async def test_a_null_from_the_cache_decides_nothing(world: World) -> None:
    await world.child("a", continuable(), live=False)
    world.spies.cache = lambda _: Snapshot(0, {"subagent": None})
    assert await world.children() == [child("a")]
    assert world.spies.observed == ["a"]


async def test_a_cold_child_whose_log_is_damaged_is_unavailable_and_its_sibling_is_listed(
    open_world: OpenWorld, heald_home: Path
) -> None:
    async with open_world(without=["projection-cache"]) as world:
        await world.child("a", continuable(), created_at=1, live=False)
        await world.child("b", continuable(), created_at=2, live=False)
        tail = heald_home / "sessions" / "a" / "tail.jsonl"
        tail.write_bytes(tail.read_bytes().replace(b"helper", b"hacker") + b"\n")
        assert await world.children() == [unavailable("a"), child("b")]


async def test_a_settled_child_whose_only_descriptor_is_malformed_is_corrupt(
    world: World,
) -> None:
    unlabelled = {"version": 2, "mode": "continuable", "provider": "spawn"}
    await world.child("a", unlabelled, live=False)
    assert await world.children() == [corrupt("a")]


async def test_a_settled_child_whose_descriptor_is_of_version_3_is_corrupt(world: World) -> None:
    await world.child("a", one_shot() | {"version": 3}, live=False)
    assert await world.children() == [corrupt("a")]


@pytest.mark.parametrize(("live", "expected"), [(True, []), (False, [corrupt("a")])])
async def test_a_fork_that_has_only_its_ancestors_descriptor_is_corrupt_or_left_out(
    world: World,
    live: bool,  # noqa: FBT001
    expected: list[Any],
) -> None:
    await world.child("old", continuable("ancestor"), parent="elsewhere", live=False)
    await world.fork("old", "a", live=live)
    assert await world.children() == expected


@pytest.mark.parametrize(("live", "expected"), [(True, []), (False, [corrupt("a")])])
async def test_a_fork_of_a_healthy_ancestor_whose_own_descriptor_is_malformed(
    world: World,
    live: bool,  # noqa: FBT001
    expected: list[Any],
) -> None:
    await world.child("old", continuable("ancestor"), parent="elsewhere", live=False)
    await world.fork("old", "a", {"version": 2}, live=live)
    assert await world.children() == expected


async def test_a_live_seeded_child_is_left_out_until_its_own_descriptor(world: World) -> None:
    await world.child("old", continuable("ancestor"), parent="elsewhere")
    session = await world.fork("old", "a")
    assert await world.children() == []
    session.append("subagent/descriptor", continuable("own"))
    assert await world.children() == [child("a", "running", label="own")]


async def test_a_descriptor_of_a_provider_that_is_not_mounted_is_listed(world: World) -> None:
    await world.child("a", continuable() | {"provider": "teleport"}, live=False)
    await world.child("b", continuable() | {"provider": "teleport"}, created_at=2)
    assert {row.id for row in await world.children()} == {"a", "b"}


async def brittle_children(world: World, *, live: bool) -> list[Any]:
    """List a child, and a live one, on both of which another unit raises."""
    world.spies.cache = lambda _: None
    await world.child("a", continuable("brittle"), created_at=1, live=live)
    await world.child("b", continuable("brittle"), created_at=2)
    return await world.children()


async def test_a_cold_child_on_whose_log_another_unit_raises_is_listed(world: World) -> None:
    rows = await brittle_children(world, live=False)
    assert rows == [child("a", label="brittle"), running("b", "brittle")]
    assert world.spies.observed == ["a"]


async def test_a_live_child_on_whose_log_another_unit_raises_is_listed_and_so_is_another(
    world: World,
) -> None:
    rows = await brittle_children(world, live=True)
    assert rows == [running("a", "brittle"), running("b", "brittle")]


async def test_a_child_on_which_the_subagent_fold_raises_is_corrupt_running_or_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = descriptor.parse

    def parse(encoded: msgspec.Raw) -> Any:
        if b"poison" in bytes(memoryview(encoded)):
            raise RuntimeError("poisoned")
        return real(encoded)

    monkeypatch.setattr("heald_subagent.identity.parse", parse)
    await world.child("a", continuable("poison"), created_at=1)
    await world.child("b", continuable("poison"), created_at=2, live=False)
    await world.child("c", continuable(), created_at=3)
    await world.child("d", continuable(), created_at=4, live=False)
    assert await world.children() == [
        corrupt("a"),
        corrupt("b"),
        child("c", "running"),
        child("d"),
    ]


async def test_a_cold_read_that_fails_is_unavailable_and_nothing_of_it_is_remembered(
    world: World,
) -> None:
    async def fail(ident: SessionId) -> None:
        if ident == "a":
            raise OSError("unplugged")

    world.spies.cache = lambda _: None
    await world.child("a", continuable(), created_at=1, live=False)
    await world.child("b", continuable(), created_at=2, live=False)
    world.spies.before_observing = fail
    assert await world.children() == [unavailable("a"), child("b")]
    world.spies.before_observing = None
    assert await world.children() == [child("a"), child("b")]


async def test_a_compacted_child_and_its_uncompacted_twin_differ_in_nothing_but_the_id(
    world: World,
) -> None:
    message = {"id": "m", "text": "hello"}
    for ident, compacted in (("a", True), ("b", False)):
        session = await world.child(ident, continuable("twin"))
        seq = append_unchecked(session, "user/message", message, surface=Surface("append")).seq
        if compacted:
            replace = Surface("replace", seq, seq)
            append_unchecked(session, "user/message", message, surface=replace, sources=(seq,))
        await world.store.dispose(session)
    rows = await world.children()
    assert [row.id for row in rows] == ["a", "b"]
    assert msgspec.structs.replace(rows[0], id=SessionId("b")) == rows[1]


async def test_a_grandchild_makes_has_children_true_and_only_the_child_is_observed(
    world: World,
) -> None:
    world.spies.cache = lambda _: None
    await world.child("a", continuable(), live=False)
    await world.child("aa", continuable(), parent="a", live=False)
    assert await world.children() == [child("a", has_children=True)]
    assert world.spies.observed == ["a"]


async def test_each_cold_child_is_observed_once_and_the_live_one_never(world: World) -> None:
    world.spies.cache = lambda _: None
    await world.child("a", continuable(), live=False)
    await world.child("b", continuable(), live=False)
    await world.child("c", continuable())
    assert len(await world.children()) == 3
    assert sorted(world.spies.observed) == ["a", "b"]
    assert world.spies.cached.count("c") == 0


@pytest.mark.parametrize("row", [None, Snapshot(3, {})], ids=["no row", "a row without the key"])
async def test_a_cache_that_does_not_know_the_child_costs_one_observation(
    world: World, row: Snapshot | None
) -> None:
    await world.child("a", continuable(), live=False)
    world.spies.cache = lambda _: row
    assert await world.children() == [child("a")]
    assert world.spies.observed == ["a"]


async def test_without_a_cache_service_there_is_one_observation_and_the_same_row(
    open_world: OpenWorld,
) -> None:
    async with open_world(without=["projection-cache"]) as world:
        await world.child("a", continuable(), live=False)
        assert await world.children() == [child("a")]
        assert world.spies.observed == ["a"]


@pytest.mark.parametrize("error", [RuntimeError("broken"), asyncio.CancelledError()])
async def test_a_cache_that_raises_is_passed_over_in_silence(
    world: World, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    def fail(_: Header) -> Snapshot | None:
        raise error

    await world.child("a", continuable(), live=False)
    world.spies.cache = fail
    assert await world.children() == [child("a")]
    assert world.spies.observed == ["a"]
    assert caplog.records == []


@pytest.mark.parametrize(
    "view",
    [
        {"seq": 0},
        {"mode": "continuable", "seq": 0},
        {"mode": "unheard", "label": "a", "seq": 0},
        {"mode": "one-shot", "label": 5, "seq": 0},
        {"mode": "one-shot", "seq": "0"},
        "helper",
        [],
    ],
)
async def test_a_view_that_is_none_decides_nothing_in_the_cache_and_hides_nobody_live(
    world: World, view: Any
) -> None:
    await world.child("a", continuable(), live=False)
    await world.child("b", continuable())
    world.spies.cache = lambda _: Snapshot(0, {"subagent": view})
    assert await world.children() == [child("a"), running("b")]
    world.spies.view = lambda ident: Snapshot(0, {"subagent": view}) if ident == "b" else None
    world.spies.cache = None
    assert await world.children() == [child("a"), unavailable("b")]


async def test_live_children_are_as_they_were_when_they_were_paired(world: World) -> None:
    """Whatever happens to them while a cold one is read: `activity` is of the same step."""
    await world.child("cold", continuable(), created_at=1, live=False)
    gone = await world.child("gone", continuable("before"), created_at=2)
    other = await world.child("other", continuable("before"), created_at=3)

    async def meanwhile(_: SessionId) -> None:
        append_unchecked(other, "subagent/descriptor", continuable("after"))
        await world.store.dispose(gone)

    world.spies.cache = lambda _: None
    world.spies.while_observing = meanwhile
    before = [child("cold"), running("gone", label="before"), running("other", label="before")]
    assert await world.children() == before


async def test_a_live_child_is_paired_and_read_in_one_step(world: World) -> None:
    """Nothing may come between: what is called soon is called after the cells were read."""
    session = await world.child("a", continuable("before"))

    async def soon() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(append_unchecked, session, "subagent/descriptor", continuable("after"))

    world.spies.after_listing = soon
    assert await world.children() == [running("a", label="before")]
    assert await world.children() == [running("a", label="after")]


async def test_live_children_are_unavailable_when_the_projections_go_away_during_the_enumeration(
    open_world: OpenWorld,
) -> None:
    """They were there when the call looked for what it needs; afterwards that is no refusal."""
    leave, left = asyncio.Event(), asyncio.Event()

    class Leaving(ProjectionPlugin):
        async def start(self) -> None:
            group = await self.stack.enter_async_context(asyncio.TaskGroup())
            group.create_task(self.fail())

        async def fail(self) -> None:
            await leave.wait()
            raise RuntimeError("gone")

        async def stop(self) -> None:
            left.set()

    rows = [Row("projection", "leaving")]
    without = ["projection", "projection-cache"]
    async with open_world(without=without, rows=rows, program={"leaving": Leaving}) as world:

        async def gone() -> None:
            leave.set()
            await left.wait()
            assert world.host.scope.find(projections) is None

        await world.child("a", continuable(), created_at=1)
        await world.child("b", continuable(), created_at=2)
        assert await world.children() == [running("a"), running("b")]
        world.spies.after_listing = gone
        assert await world.children() == [unavailable("a"), unavailable("b")]
        with pytest.raises(SubagentProjectionsUnavailable):
            await world.children()


async def test_a_live_session_whose_record_has_no_header_is_listed_with_its_own(
    world: World,
) -> None:
    await world.child("a", continuable())
    world.spies.records = lambda records: [
        SessionRecord(r.id, None, live=False, stored=True, problem="broken") for r in records
    ]
    assert await world.children() == [running("a")]


async def test_an_ordinary_grandchild_leaves_has_children_false(world: World) -> None:
    await world.child("a", continuable())
    await world.session("aa", parent="a")
    assert await world.children() == [child("a", "running")]


async def test_a_corrupt_grandchild_makes_has_children_true(world: World) -> None:
    await world.child("a", continuable(), live=False)
    await world.child("aa", {"version": 3}, parent="a", live=False)
    assert await world.children() == [child("a", has_children=True)]
    assert await world.children("a") == [corrupt("aa")]


async def test_a_parent_without_children_has_an_empty_list(world: World) -> None:
    await world.session("parent")
    assert await world.children() == []


async def test_an_unknown_parent_has_an_empty_list(world: World) -> None:
    assert await world.children("nobody") == []
    assert await world.descendants("nobody") == []


async def test_a_header_conflict_between_live_and_stored_gives_the_live_row(
    world: World,
) -> None:
    session = await world.child("a", continuable())

    def conflicting(records: Any) -> Any:
        other = msgspec.structs.replace(session.header, parent_session=SessionId("x"), cwd=None)
        return [SessionRecord(r.id, other, live=False, stored=True) for r in records]

    world.spies.records = conflicting
    assert await world.children() == [child("a", "running")]


async def test_fifty_cold_children_are_read_at_most_four_at_a_time_and_all_is_let_go(
    world: World,
) -> None:
    async def yielding(ident: SessionId) -> None:
        await asyncio.sleep(0)
        if int(ident) % 3 == 0:
            raise OSError("unplugged")

    for n in range(50):
        await world.child(f"{n:02}", continuable(), created_at=n, live=False)
    world.spies.cache = lambda _: None
    world.spies.while_observing = yielding
    rows = await world.children()
    assert [row.id for row in rows] == [f"{n:02}" for n in range(50)]
    assert [isinstance(row, ChildRow) for row in rows] == [n % 3 != 0 for n in range(50)]
    assert world.spies.most_in_flight == 4
    assert world.spies.in_flight == 0


@pytest.mark.parametrize(
    "error", [OSError("x"), Cancelled("x"), ValueError("x"), Exception("x"), AssertionError()]
)
async def test_an_observation_that_fails_with_any_exception_is_unavailable(
    world: World, error: Exception
) -> None:
    async def fail(_: SessionId) -> None:
        raise error

    await world.child("a", continuable(), live=False)
    world.spies.cache = lambda _: None
    world.spies.before_observing = fail
    assert await world.children() == [unavailable("a")]


async def test_a_read_that_cancels_itself_is_unavailable(world: World) -> None:
    async def fail(_: SessionId) -> None:
        raise asyncio.CancelledError

    await world.child("a", continuable(), live=False)
    world.spies.cache = lambda _: None
    world.spies.while_observing = fail
    assert await world.children() == [unavailable("a")]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
async def test_an_interrupt_or_an_exit_during_a_read_is_not_held_up(
    world: World, error: type[BaseException]
) -> None:
    async def fail(ident: SessionId) -> None:
        if ident == "b":
            raise error

    for ident in "abcdefghijkl":
        await world.child(ident, continuable(), live=False)
    world.spies.cache = lambda _: None
    world.spies.while_observing = fail
    caught: BaseException | None = None
    try:
        await world.children()
    except BaseException as raised:  # noqa: BLE001 - an exit must not end the tests
        caught = raised
    assert type(caught) is error
    assert world.spies.in_flight == 0
    assert len(world.spies.observed) < 12


async def test_the_services_are_asked_for_exactly_the_one_key(world: World) -> None:
    await world.child("a", continuable(), live=False)
    await world.child("b", continuable())
    world.spies.cache = lambda _: None
    await world.children()
    await world.descendants()
    assert world.spies.snapshot_keys == [["subagent"]] * 2
    assert world.spies.cached_keys == [["subagent"]] * 2
    assert world.spies.observed_keys == [["subagent"]] * 2


async def test_a_seeded_child_with_cut_zero_does_not_ask_the_cache(world: World) -> None:
    await world.child("a", continuable(), live=False)

    def seeded(records: Any) -> Any:
        return [
            SessionRecord(r.id, seed(r.header), live=False, stored=True)
            for r in records
            if r.header is not None
        ]

    def seed(header: Header) -> Header:
        return msgspec.structs.replace(header, is_seeded=True)

    world.spies.records = seeded
    world.spies.header = seed
    assert await world.children() == [child("a")]
    assert world.spies.cached == []
    assert world.spies.observed == ["a"]


async def test_a_checkpoint_of_another_state_version_costs_one_observation(
    open_world: OpenWorld, heald_home: Path
) -> None:
    async with open_world() as world:
        await world.child("a", continuable(), live=False)
    for path in (heald_home / "cache").glob("*.sqlite*"):
        if path.suffix.startswith(".sqlite"):
            set_state_version(path)
    async with open_world() as world:
        assert await world.children() == [child("a")]
        assert world.spies.observed == ["a"]


def set_state_version(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(1000)
    tables = [row[0] for row in connection.execute("select name from sqlite_master")]
    for table in tables:
        columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
        if "state_version" in columns:
            connection.execute(f"update {table} set state_version = 99")
    connection.close()


async def test_a_checkpoint_from_between_two_descriptors_serves_the_old_label(
    open_world: OpenWorld,
) -> None:
    """The accepted window: a second descriptor, and a crash before the next checkpoint."""
    async with open_world() as world:
        await world.child("a", continuable("old"), live=False)
    async with open_world(without=["projection-cache"]) as world:
        session = await world.store.resume(SessionId("a"))
        append_unchecked(session, "subagent/descriptor", continuable("new"))
    async with open_world() as world:
        assert await world.children() == [child("a", label="old")]


async def test_a_session_with_a_descriptor_but_no_origin_is_not_listed(world: World) -> None:
    await world.session("a", continuable(), parent="parent", live=False)
    await world.session("b", continuable(), parent="parent")
    assert await world.children() == []
    assert await world.descendants() == []


async def test_a_child_that_is_prepared_and_not_published_is_not_listed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared, gate, flush = asyncio.Event(), asyncio.Event(), LiveSession.flush

    async def held_up(session: LiveSession) -> None:
        prepared.set()
        await gate.wait()
        await flush(session)

    monkeypatch.setattr(LiveSession, "flush", held_up)
    first = [NewEvent("subagent/descriptor", continuable())]
    making = asyncio.create_task(
        world.store.create(
            cwd=None,
            id=SessionId("a"),
            parent_session=SessionId("parent"),
            origin="subagent",
            first=first,
        )
    )
    await prepared.wait()
    assert await world.children() == []
    gate.set()
    await making
    assert await world.children() == [child("a", "running")]


async def test_a_session_without_a_readable_header_is_passed_over(
    world: World, heald_home: Path
) -> None:
    await world.child("a", continuable(), live=False)
    await world.child("b", continuable(), live=False)
    (heald_home / "sessions" / "a" / "session.json").write_text("{")
    assert await world.children() == [child("b")]


HOLDER = """
import asyncio, sys
from pathlib import Path
from heald import Row, open_host
from heald_persistence import session_persistence

async def hold():
    rows = [Row("persistence", "persistence")]
    async with open_host(home=Path(sys.argv[1]), rows=rows, env={}) as host:
        writer = await host.scope.require(session_persistence).open("a")
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        await writer.close()

asyncio.run(hold())
"""


@pytest.mark.parametrize("cached", [True, False])
async def test_a_cold_child_that_another_process_writes_is_listed(
    world: World,
    heald_home: Path,
    cached: bool,  # noqa: FBT001
) -> None:
    await world.child("a", continuable(), live=False)
    if not cached:
        world.spies.cache = lambda _: None
    holder = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        HOLDER,
        str(heald_home),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"held\n"
    assert await world.children() == [child("a")]
    await holder.communicate(b"")  # the end of its input lets it go
    assert holder.returncode == 0


async def test_cold_reads_that_finish_in_reverse_are_listed_in_order(world: World) -> None:
    done = {ident: asyncio.Event() for ident in "abcd"}
    done["e"] = asyncio.Event()
    done["e"].set()
    finished: list[str] = []

    async def after_the_next(ident: SessionId) -> None:
        await done[chr(ord(ident) + 1)].wait()
        finished.append(ident)
        done[ident].set()

    for n, ident in enumerate("abcd"):
        await world.child(ident, continuable(ident), created_at=n, live=False)
    world.spies.cache = lambda _: None
    world.spies.while_observing = after_the_next
    assert [row.label for row in await world.children()] == ["a", "b", "c", "d"]
    assert finished == ["d", "c", "b", "a"]


def fingerprint(home: Path) -> dict[str, str]:
    """Return what is in every file of sessions and of checkpoints; the corpus may be written."""
    files = [*home.glob("sessions/**/*"), *home.glob("cache/checkpoints-*")]
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
        if path.is_file() and not path.name.endswith("-shm")
    }


async def test_a_listing_changes_no_byte_of_sessions_or_checkpoints(
    world: World, heald_home: Path
) -> None:
    await world.child("a", continuable(), live=False)
    await world.child("b", {"version": 3}, live=False)
    await world.fork("a", "c", continuable(), live=False)
    await world.child("d", continuable())
    before = fingerprint(heald_home)
    await world.children()
    await world.descendants()
    assert fingerprint(heald_home) == before


async def test_a_continuable_child_with_an_empty_label_is_a_child(world: World) -> None:
    await world.child("a", continuable(""), live=False)
    rows = await world.children()
    assert rows == [child("a", label="")]
    assert msgspec.to_builtins(rows[0])["label"] == ""


async def test_an_absent_cwd_is_not_an_empty_one(world: World) -> None:
    await world.child("a", continuable(), cwd=None, live=False)
    world.spies.cache = lambda _: None
    world.spies.header = lambda h: msgspec.structs.replace(h, cwd="")
    assert await world.children() == [corrupt("a")]


async def test_a_child_disposed_between_enumeration_and_pairing_takes_the_cold_path(
    world: World,
) -> None:
    session = await world.child("a", continuable())

    async def dispose_after() -> None:
        await world.store.dispose(session)

    def live_record(records: Any) -> Any:
        return [SessionRecord(r.id, r.header, live=True, stored=True) for r in records]

    world.spies.before_listing = dispose_after
    world.spies.records = live_record
    assert await world.children() == [child("a")]
    assert world.spies.snapshots == []


async def test_a_child_deleted_after_enumeration_is_unavailable_and_then_gone(
    world: World, heald_home: Path
) -> None:
    async def delete(ident: SessionId) -> None:
        shutil.rmtree(heald_home / "sessions" / ident)

    await world.child("a", continuable(), live=False)
    world.spies.cache = lambda _: None
    world.spies.before_observing = delete
    assert await world.children() == [unavailable("a")]
    assert await world.children() == []


async def test_a_child_that_became_live_meanwhile_without_identity_is_left_out(
    world: World,
) -> None:
    async def resume(ident: SessionId) -> None:
        await world.store.resume(ident)

    await world.child("a", live=False)
    world.spies.before_observing = resume
    assert await world.children() == []


async def test_a_child_that_became_live_meanwhile_is_inactive_as_the_pairing_saw_it(
    world: World,
) -> None:
    async def resume(ident: SessionId) -> None:
        await world.store.resume(ident)

    await world.child("a", continuable(), live=False)
    world.spies.cache = lambda _: None
    world.spies.before_observing = resume
    assert await world.children() == [child("a")]
    assert await world.children() == [child("a", "running")]


async def test_a_session_that_is_its_own_parent_is_its_child_and_never_its_descendant(
    world: World,
) -> None:
    await world.child("a", continuable(), parent="a", live=False)
    assert await world.children("a") == [child("a", has_children=True)]
    assert await world.descendants("a") == []


MODULES = (listing, ladder, workers, rows, services)
ALLOWED = {
    "heald": {"CancelToken", "Scope", "raise_if_cancelled"},
    "heald_session": {"Header", "LogOffset", "Seq", "SessionId", "session_store"},
    "heald_projection": {"ProjectionFaulted", "projections"},
    "heald_projection_cache": {"projection_cache"},
    "heald_query": {"SessionQuery", "SessionRecord", "session_query"},
}
OWN = {
    "heald_subagent.errors": {
        "SubagentProjectionsUnavailable",
        "SubagentQueryUnavailable",
        "SubagentSessionStoreUnavailable",
    },
    "heald_subagent.identity": {"KEY", "IdentityView", "own_view"},
    "heald_subagent.ladder": {"Finding", "Ladder"},
    "heald_subagent.rows": {"ORIGIN", "ChildRow", "DiagnosticRow", "SubagentRow"},
    "heald_subagent.services": {"corpus_of"},
    "heald_subagent.workers": {"work_through"},
}
"""What the listing may take from its own package: a view's type, never the fold or the parser."""
LIBRARIES = {
    "__future__",
    "asyncio",
    "attrs",
    "collections.abc",
    "msgspec",
    "operator",
    "typing",
}


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield every module that is imported, at the top or in a function, and each name from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_listing_imports_nothing_that_could_read_an_event(module: Any) -> None:
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    for source, name in imports(tree):
        assert source in LIBRARIES or name in (ALLOWED | OWN).get(source, ()), (source, name)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & {"__import__", "importlib", "eval", "exec"}


GIVEN = (
    LiveSession,
    Observation,
    ProjectionCache,
    Projections,
    Session,
    SessionQuery,
    SessionRecord,
    SessionStore,
)
"""What the listing holds that could lead to an event."""
ASKED = {
    LiveSession: {"cut", "header"},
    Observation: {"header", "inherited_event_count", "projections", "source"},
    ProjectionCache: {"cached_snapshot"},
    Projections: {"snapshot"},
    SessionQuery: {"list_sessions", "observe_session"},
    SessionRecord: {"header", "id"},
    SessionStore: {"get"},
}
"""All that is asked of it."""
NAMESAKES = {
    "append": {"below.setdefault(header.parent_session, [])", "failures", "found", "paired"},
    "id": {"header", "place.header", "record"},
    "live": {"corpus", "self", "ladder"},
    "scope": {"self"},
}
"""What the listing's own things have that is called as something there, and whose it is."""


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_listing_asks_for_no_event_of_what_it_was_given(module: Any) -> None:
    """Sessions and observations have events; of either, allowed is what is named here."""
    offered = {name for one in GIVEN for name in dir(one) if not name.startswith("__")}
    asked = {name for names in ASKED.values() for name in names}
    for node in ast.walk(ast.parse(Path(module.__file__).read_text("utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in offered - asked:
            assert ast.unparse(node.value) in NAMESAKES.get(node.attr, ()), ast.unparse(node)


def test_what_the_listing_asks_for_is_there_to_be_asked_for() -> None:
    for given, names in ASKED.items():
        assert names <= set(dir(given))
