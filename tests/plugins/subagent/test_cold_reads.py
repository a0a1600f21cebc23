"""Cold children on a real disk: damage, refusals, and a corpus that changes while it is read."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from heald import Cancelled, CancelToken, HealdError, Row
from heald_persistence import session_persistence
from heald_persistence.testing import blocks_in
from heald_projection import ProjectionFaulted
from heald_session import Seq, SessionId
from heald_session.testing import append_unchecked
from heald_subagent import ChildRow, DiagnosticRow

if TYPE_CHECKING:
    from tests.plugins.subagent.conftest import OpenWorld, World

IDENTITY = {"version": 2, "mode": "continuable", "provider": "spawn", "label": "helper"}
SMALL = Row("persistence", "persistence", {"seal_bytes": 65_536})
FILLER = {"turn": 1, "note": "x" * 2000}


def told(rows: list[Any]) -> dict[str, str]:
    return {row.id: row.mode if isinstance(row, ChildRow) else row.reason for row in rows}


def flip(log: Path, *, holds: bool) -> None:
    """Damage the first frame that holds a descriptor, or the last that is proven not to."""
    data = bytearray(log.read_bytes())
    frames = [
        (frame + stop) // 2
        for _, frame, stop, zone in blocks_in(data)
        if ("subagent/descriptor" in zone["types"]) == holds
    ]
    data[frames[0] if holds else frames[-1]] ^= 1
    log.write_bytes(data)


@pytest.mark.parametrize(
    ("holds", "expected"), [(True, "unavailable"), (False, "continuable")], ids=["holds", "not"]
)
async def test_a_damaged_frame_matters_only_if_it_may_hold_the_descriptor(
    open_world: OpenWorld,
    heald_home: Path,
    holds: bool,  # noqa: FBT001
    expected: str,
) -> None:
    without = ["persistence", "projection-cache"]
    async with open_world(without=without, rows=[SMALL]) as world:
        for ident in "ab":
            session = await world.child(ident, IDENTITY)
            for _ in range(150):
                append_unchecked(session, "turn/start", FILLER)
                await session.flush()
            await world.store.dispose(session)
        flip(heald_home / "sessions" / "a" / "log.jsonl.zst", holds=holds)
        assert told(await world.children()) == {"a": expected, "b": "continuable"}
        assert told(await world.descendants()) == {"a": expected, "b": "continuable"}


@pytest.mark.parametrize("seeded", [False, True], ids=["unseeded", "seeded"])
async def test_a_cold_child_costs_the_frames_that_name_its_descriptor_whatever_its_length(
    open_world: OpenWorld, heald_home: Path, monkeypatch: pytest.MonkeyPatch, *, seeded: bool
) -> None:
    """Of the log that is the index, those frames, the tail, and the map that proves the index."""
    without = ["persistence", "projection-cache"]
    async with open_world(without=without, rows=[SMALL]) as world:
        await world.child("old", IDENTITY, parent="elsewhere", live=False)
        for count in (100, 400, 1_600):
            ident = f"of-{count}"
            if seeded:
                session = await world.fork("old", ident, IDENTITY)
            else:
                session = await world.child(ident, IDENTITY)
            for number in range(count):
                append_unchecked(session, "turn/start", FILLER)
                if number % 25 == 0:
                    await session.flush()
            await world.store.dispose(session)
        logs: dict[str, Any] = {}
        storage = type(world.host.scope.require(session_persistence))
        read = storage.read

        async def noted(self: Any, id: SessionId, **how: Any) -> Any:  # noqa: A002
            logs[id] = await read(self, id, **how)
            return logs[id]

        monkeypatch.setattr(storage, "read", noted)
        assert set(told(await world.children()).values()) == {"continuable"}
    assert logs.keys() == {"of-100", "of-400", "of-1600"}
    for id_, log in logs.items():
        place = heald_home / "sessions" / id_
        tail = (place / "tail.jsonl").read_bytes()
        blocks = blocks_in((place / "log.jsonl.zst").read_bytes())
        naming = [block for block in blocks if "subagent/descriptor" in block[3]["types"]]
        has_events = tail.count(b"\n") > 1
        assert len(naming) == 1
        assert log.frames_decoded == len(naming) + has_events
        frames = sum(stop - begin for begin, _, stop, _ in naming)
        assert log.bytes_read <= (place / "log.idx").stat().st_size + frames + len(tail)


async def test_a_descriptor_of_ten_megabytes_is_corrupt_and_costs_nobody_else(
    open_world: OpenWorld,
) -> None:
    huge = IDENTITY | {"label": "x" * 10_000_000}
    async with open_world(without=["projection-cache"]) as world:
        await world.child("a", huge, live=False)
        await world.child("b", IDENTITY, huge)
        await world.child("c", IDENTITY, live=False)
        rows = await world.children()
        assert told(rows) == {"a": "corrupt", "c": "continuable"}
        await world.store.dispose(world.store.live()[0])
        assert told(await world.children()) == {"a": "corrupt", "b": "corrupt", "c": "continuable"}


def fail(error: Exception) -> Any:
    """Return what fails for session `a` and for no other."""

    def failing(ident: SessionId) -> None:
        if ident == "a":
            raise error

    return failing


FAILURES = [
    pytest.param(OSError("unplugged"), "unavailable", id="storage"),
    pytest.param(ProjectionFaulted("title", Seq(0), None, "no"), "unavailable", id="another fold"),
    pytest.param(ProjectionFaulted("subagent", Seq(0), None, "no"), "corrupt", id="its fold"),
]


@pytest.mark.parametrize(("error", "expected"), FAILURES)
async def test_a_live_child_whose_cell_fails_is_told_so_and_no_log_is_read_instead(
    world: World, error: Exception, expected: str
) -> None:
    await world.child("a", IDENTITY)
    await world.child("b", IDENTITY)
    world.spies.before_snapshot = fail(error)
    assert told(await world.children()) == {"a": expected, "b": "continuable"}
    world.spies.before_snapshot = lambda _: None
    assert told(await world.children()) == {"a": "continuable", "b": "continuable"}
    assert world.spies.observed == world.spies.cached == []


@pytest.mark.parametrize(("error", "expected"), FAILURES)
async def test_a_cold_child_whose_observation_fails_is_told_so(
    world: World, error: Exception, expected: str
) -> None:
    async def failing(ident: SessionId) -> None:
        fail(error)(ident)

    await world.child("a", IDENTITY, live=False)
    await world.child("b", IDENTITY, live=False)
    world.spies.cache = lambda _: None
    world.spies.while_observing = failing
    assert told(await world.children()) == {"a": expected, "b": "continuable"}


async def test_a_diagnostic_says_id_reason_and_place_and_nothing_else(world: World) -> None:
    await world.child("a", {"version": 3, "label": "secret"}, live=False)
    assert await world.children() == [DiagnosticRow(id=SessionId("a"), reason="corrupt")]
    rows = msgspec.to_builtins([*await world.children(), *await world.descendants()])
    assert rows == [
        {"kind": "diagnostic", "id": "a", "reason": "corrupt"},
        {
            "kind": "diagnostic",
            "id": "a",
            "reason": "corrupt",
            "parent_id": "parent",
            "depth": 1,
        },
    ]


async def test_an_abort_while_live_children_are_told_is_cancelled(world: World) -> None:
    token = CancelToken()
    await world.child("a", IDENTITY)
    world.spies.before_snapshot = lambda _: token.cancel()
    with pytest.raises(Cancelled):
        await world.children(cancel=token)


@pytest.mark.parametrize("without", ["projection", "session", "query", None])
async def test_every_error_of_the_listing_itself_has_a_stable_code(
    open_world: OpenWorld, without: str | None
) -> None:
    token = CancelToken()
    if without is None:
        token.cancel()
    left_out = ["projection-cache", *filter(None, [without])]
    async with open_world(without=left_out) as world:
        for call in (world.children, world.descendants):
            with pytest.raises(HealdError) as caught:
                await call(cancel=token)
            assert caught.value.code in {
                "CANCELLED",
                "SUBAGENT_CONTROL_PROJECTIONS_UNAVAILABLE",
                "SUBAGENT_CONTROL_QUERY_UNAVAILABLE",
                "SUBAGENT_CONTROL_SESSION_STORE_UNAVAILABLE",
            }


def open_files(below: Path) -> set[str]:
    """Return the files of sessions that this process has open."""
    held = set()
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            held.add(str(one.readlink()))
    return {name for name in held if name.startswith(f"{below}/sessions/")}


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
@pytest.mark.parametrize("ends", ["well", "failing", "aborted", "cancelled"])
async def test_however_a_listing_ends_no_log_stays_open(
    open_world: OpenWorld, heald_home: Path, ends: str
) -> None:
    token, seen = CancelToken(), 0

    async def meet(_: SessionId) -> None:
        nonlocal seen
        seen += 1
        assert open_files(heald_home)
        if ends == "failing":
            raise OSError("unplugged")
        if ends == "aborted" and seen == 2:
            token.cancel()
        if ends == "cancelled" and seen == 2:
            listing.cancel()

    async with open_world(without=["projection-cache"]) as world:
        for number in range(8):
            await world.child(f"{number}", IDENTITY, live=False)
        before = open_files(heald_home)
        world.spies.while_observing = meet
        listing = asyncio.create_task(world.children(cancel=token))
        done = await asyncio.gather(listing, return_exceptions=True)
        kinds = {"aborted": Cancelled, "cancelled": asyncio.CancelledError}
        assert isinstance(done[0], kinds.get(ends, list))
        assert world.spies.in_flight == 0
        assert open_files(heald_home) == before
