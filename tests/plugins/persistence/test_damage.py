"""Bytes that rotted: said to be damage, costing what they held and nothing else, and salvaged."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard

from heald_persistence import Damage, SessionBusy, SessionDamaged, disk
from heald_persistence.frames import MAP_MAGIC, ZoneMap
from heald_persistence.lines import TailHeader, line_of
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import blocks_in, make_events, make_header, read_all, same, store
from heald_session import Event, LogOffset, SessionId

ONE = SessionId("one")
RARE = "acme/rare"


@pytest.fixture
def small(make_backend: Callable[..., LocalPersistence]) -> LocalPersistence:
    return make_backend(seal_bytes=4000)


EVENTS = [
    *make_events(70),
    *make_events(1, start=70, type=RARE),
    *make_events(59, start=71),
]


@pytest.fixture
async def place(small: LocalPersistence, root: Path) -> Path:
    """A session of several frames and a tail, with one rare event in one frame."""
    writer = await small.create(make_header(), LogOffset(0))
    for start in range(0, 130, 5):
        writer.append(EVENTS[start : start + 5])
        await writer.flush()
    await writer.discard()
    assert (root / "one" / "log.jsonl.zst").stat().st_size > 2000
    assert len((root / "one" / "tail.jsonl").read_bytes().splitlines()) > 1
    return root / "one"


async def read_with_gaps(
    backend: LocalPersistence, **selection: Any
) -> tuple[list[Event], list[Damage]]:
    told: list[Damage] = []
    return await read_all(backend, on_damage=told.append, **selection), told


def are_all_but_the_lost(found: Sequence[Event], told: Sequence[Damage], end: int = 130) -> bool:
    """Say whether what was found is what was written, but for what was said to be lost."""
    lost: set[int] = set()
    for damage in told:
        lost.update(range(damage.first, damage.first + (damage.count or 0)))
    return same(found, [event for event in EVENTS[:end] if event.seq not in lost])


async def test_damage_is_told_of_in_its_place_between_the_batches(
    small: LocalPersistence, place: Path
) -> None:
    data = bytearray((place / "log.jsonl.zst").read_bytes())
    _, frame, stop, zone = blocks_in(data)[2]
    data[frame:stop] = bytes(stop - frame)
    (place / "log.jsonl.zst").write_bytes(data)
    seen: list[int | Damage] = []
    async with await small.read(ONE) as log:
        async for batch in log.batches(on_damage=seen.append):
            seen += [event.seq for event in batch]
        assert log.end == 130
    at, count = zone["first"], zone["count"]
    (damage,) = [item for item in seen if isinstance(item, Damage)]
    assert (damage.kind, damage.first, damage.count) == ("frame", at, count)
    assert damage.file == "log.jsonl.zst"
    assert damage.types == frozenset(("acme/note",))
    assert seen == [*range(at), damage, *range(at + count, 130)]


@pytest.mark.parametrize("flips", [120, pytest.param(20_000, marks=pytest.mark.crash)])
async def test_one_flipped_bit_is_always_reported_and_costs_only_what_it_says(
    small: LocalPersistence, place: Path, flips: int
) -> None:
    log = place / "log.jsonl.zst"
    good = log.read_bytes()
    maps = [at for begin, frame, _, _ in blocks_in(good) for at in range(begin, frame)]
    chance = random.Random(7)
    for number in range(flips):
        at = chance.choice(maps) if number % 2 else chance.randrange(len(good))
        bad = bytearray(good)
        bad[at] ^= 1 << chance.randrange(8)
        log.write_bytes(bad)
        found, told = await read_with_gaps(small)
        assert are_all_but_the_lost(found, told), at
        everything = await small.verify(ONE)
        assert everything, at
        assert [damage for damage in everything if damage.count != 0] == told
        with pytest.raises(SessionDamaged):
            await small.open(ONE)
        assert log.read_bytes() == bad
    assert not (place / "quarantine").exists()


async def test_when_a_damaged_session_was_last_active_stays_true(
    small: LocalPersistence, place: Path
) -> None:
    log = place / "log.jsonl.zst"
    data = bytearray(log.read_bytes())
    _, frame, end, _ = blocks_in(data)[1]
    data[(frame + end) // 2] ^= 1
    log.write_bytes(data)
    newest = await read_all(small, start=LogOffset(129))
    assert same(newest, EVENTS[-1:])
    with pytest.raises(SessionDamaged):
        await read_all(small)


async def test_a_bad_zone_map_hides_no_event(small: LocalPersistence, place: Path) -> None:
    good = (place / "log.jsonl.zst").read_bytes()
    for begin, frame, _, zone in blocks_in(good):
        for span in (range(begin, begin + 4), range(begin, begin + 8), range(begin + 8, frame)):
            bad = bytearray(good)
            for at in span:
                bad[at] ^= 0xFF
            (place / "log.jsonl.zst").write_bytes(bad)
            assert same(await read_all(small), EVENTS)
            assert same(await read_all(small, types={RARE}), [EVENTS[70]])
            (damage,) = await small.verify(ONE)
            assert (damage.kind, damage.first, damage.count) == ("zone_map", zone["first"], 0)


async def test_a_zone_map_that_lies_is_found_by_verify(
    small: LocalPersistence, place: Path
) -> None:
    good = (place / "log.jsonl.zst").read_bytes()
    begin, frame, _, zone = blocks_in(good)[1]
    zone.pop("sum")
    body = line_of(ZoneMap(**{**zone, "types": ("acme/none",), "until": zone["until"]}))
    lie = MAP_MAGIC + len(body).to_bytes(4, "little") + body
    bad = good[:begin] + lie + good[frame:]
    (place / "log.jsonl.zst").write_bytes(bad)
    (place / "log.idx").unlink()
    tail = (place / "tail.jsonl").read_bytes().split(b"\n", 1)
    header = json.loads(tail[0])
    new = line_of(TailHeader(header["log_id"], header["base"], len(bad)))
    (place / "tail.jsonl").write_bytes(new + tail[1])
    (damage,) = await small.verify(ONE)
    assert (damage.kind, damage.offset, damage.count) == ("zone_map", begin, 0)
    await small.salvage(ONE)
    assert same(await read_all(small), EVENTS)


@pytest.mark.parametrize("lengths", [40, pytest.param(5000, marks=pytest.mark.crash)])
async def test_a_log_that_was_cut_short_keeps_what_comes_before_and_the_tail(
    small: LocalPersistence, place: Path, lengths: int
) -> None:
    log = place / "log.jsonl.zst"
    good = log.read_bytes()
    base = json.loads((place / "tail.jsonl").read_bytes().split(b"\n", 1)[0])["base"]
    for length in sorted(random.Random(3).choices(range(len(good)), k=lengths)):
        log.write_bytes(good[:length])
        found, told = await read_with_gaps(small)
        assert told
        assert are_all_but_the_lost(found, told)
        whole = [stop for _, _, stop, _ in blocks_in(good) if stop <= length]
        kept = sum(zone["count"] for *_, zone in blocks_in(good)[: len(whole)])
        assert [event.seq for event in found][:kept] == list(range(kept))
        assert [event.seq for event in found][base - 130 :] == list(range(base, 130))
        with pytest.raises(SessionDamaged):
            await small.open(ONE)
    log.unlink()
    found, told = await read_with_gaps(small)
    assert are_all_but_the_lost(found, told)
    assert [(damage.kind, damage.count) for damage in told] == [("missing", base)]


async def test_only_a_reader_of_what_may_be_lost_is_refused(
    small: LocalPersistence, place: Path
) -> None:
    data = bytearray((place / "log.jsonl.zst").read_bytes())
    _, frame, stop, zone = next(b for b in blocks_in(data) if RARE not in b[3]["types"])
    data[frame:stop] = os.urandom(stop - frame)
    (place / "log.jsonl.zst").write_bytes(data)
    assert same(await read_all(small, types={RARE}), [EVENTS[70]])
    after = LogOffset(zone["first"] + zone["count"])
    assert same(await read_all(small, start=after), EVENTS[after:])
    with pytest.raises(SessionDamaged, match=r"log\.jsonl\.zst") as damaged:
        await read_all(small, types={"acme/note"})
    assert damaged.value.code == "SESSION_DAMAGED"


async def test_a_bad_record_costs_that_record(small: LocalPersistence, place: Path) -> None:
    tail = place / "tail.jsonl"
    good = tail.read_bytes()
    header, *lines = good.splitlines(keepends=True)
    tail.write_bytes(b"".join([header, lines[0].replace(b"acme", b"acne"), *lines[1:]]))
    found, (damage,) = await read_with_gaps(small)
    seq = json.loads(lines[0])["seq"]
    assert [event.seq for event in found] == [n for n in range(130) if n != seq]
    assert (damage.kind, damage.offset, damage.first) == ("line", len(header), seq)

    tail.write_bytes(good)
    log = place / "log.jsonl.zst"
    data = log.read_bytes()
    _, frame, stop, _ = blocks_in(data)[0]
    raw = zstandard.ZstdDecompressor().decompress(data[frame:stop])
    wrong = raw.replace(b'"n":5,', b'"n":6,')
    body = zstandard.ZstdCompressor(write_checksum=True).compress(wrong)
    right = zstandard.ZstdCompressor(write_checksum=True).compress(raw)
    put_first_frame(place, data, body[:-4] + right[-4:])
    found, (damage,) = await read_with_gaps(small)
    assert [event.seq for event in found] == [n for n in range(130) if n != 5]
    assert (damage.kind, damage.first, damage.count) == ("frame", 5, 1)


def put_first_frame(place: Path, log: bytes, frame: bytes, raw: int | None = None) -> None:
    """Put another frame in place of the first of a log, with a zone map and a header for it."""
    _, _, stop, zone = blocks_in(log)[0]
    zone.pop("sum")
    zone["stored"], zone["raw"] = len(frame), raw or zone["raw"]
    zone["crc"] = zlib.crc32(frame)
    body = line_of(ZoneMap(**{**zone, "types": tuple(zone["types"])}))
    data = MAP_MAGIC + len(body).to_bytes(4, "little") + body + frame + log[stop:]
    (place / "log.jsonl.zst").write_bytes(data)
    header, rest = (place / "tail.jsonl").read_bytes().split(b"\n", 1)
    base, log_id = json.loads(header)["base"], json.loads(header)["log_id"]
    (place / "tail.jsonl").write_bytes(line_of(TailHeader(log_id, base, len(data))) + rest)
    (place / "log.idx").unlink(missing_ok=True)


def bomb(*, declared: bool) -> bytes:
    """Compress 600 MB of zeros to a few kilobytes."""
    piece, count = bytes(1024 * 1024), 600
    out = io.BytesIO()
    size = len(piece) * count if declared else -1
    with zstandard.ZstdCompressor(level=1).stream_writer(out, size=size, closefd=False) as writer:
        for _ in range(count):
            writer.write(piece)
    return out.getvalue()


@pytest.mark.parametrize("size", ["declared", "unknown"])
async def test_a_frame_that_asks_for_too_much_is_refused_before_memory_is_spent(
    small: LocalPersistence, place: Path, size: str
) -> None:
    declared = size == "declared"
    frame = bomb(declared=declared)
    assert len(frame) < 100_000
    put_first_frame(place, (place / "log.jsonl.zst").read_bytes(), frame, raw=600 * 1024**2)
    tracemalloc.start()
    try:
        found, (damage,) = await read_with_gaps(small)
        with pytest.raises(SessionDamaged):
            await small.open(ONE)
        assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
    finally:
        tracemalloc.stop()
    assert ("are the most" if declared else "how large") in damage.reason
    assert are_all_but_the_lost(found, [damage])


@pytest.mark.parametrize("header", ["flipped", "of another log", "gone", "without a sense"])
async def test_a_bad_tail_header_costs_no_event_that_can_be_read(
    small: LocalPersistence, place: Path, header: str
) -> None:
    tail = place / "tail.jsonl"
    first, rest = tail.read_bytes().split(b"\n", 1)
    base = json.loads(first)["base"]
    other = {
        "flipped": b"X" + first[1:] + b"\n",
        "of another log": line_of(TailHeader("another", 7, 9)),
        "gone": b"",
        "without a sense": line_of(TailHeader("log of one", base, 0)),
    }[header]
    tail.write_bytes(other + rest)
    found, told = await read_with_gaps(small)
    if header == "of another log":
        assert same(found, EVENTS[:base])
        assert [(damage.kind, damage.first, damage.count) for damage in told] == [
            ("tail_header", base, None)
        ]
    else:
        skipped = 1 if header == "gone" else 0  # the first line is taken for the header
        assert len(found) == 130 - skipped
        assert are_all_but_the_lost(found, told)
    assert "tail_header" in {damage.kind for damage in await small.verify(ONE)}
    with pytest.raises(SessionDamaged):
        await small.open(ONE)
    await small.salvage(ONE)
    await (await small.open(ONE)).close()


async def test_salvage_makes_it_writable_and_keeps_what_it_replaced(
    small: LocalPersistence, place: Path
) -> None:
    log, tail = place / "log.jsonl.zst", place / "tail.jsonl"
    bad = bytearray(log.read_bytes())
    _, frame, stop, zone = blocks_in(bad)[1]
    bad[frame:stop] = bytes(stop - frame)
    log.write_bytes(bad)
    broken = tail.read_bytes()
    broken = broken[:-20] + b"?" + broken[-19:] + line_of(make_events(1, start=130)[0])
    tail.write_bytes(broken)

    told = await small.salvage(ONE)
    assert [(damage.kind, damage.count) for damage in told] == [
        ("frame", zone["count"]),
        ("line", 1),
    ]
    (kept,) = (place / "quarantine").iterdir()
    assert (kept / "log.jsonl.zst").read_bytes() == bad
    assert (kept / "tail.jsonl").read_bytes() == broken
    assert list(await small.verify(ONE)) == []
    found = await read_all(small)
    assert [event.seq for event in found] == list(range(131))
    lost = [event.seq for event in found if event.type == "event/lost"]
    assert lost == [*range(zone["first"], zone["first"] + zone["count"]), 129]
    times = [event.time for event in found]
    assert times == sorted(times)
    writer = await small.open(ONE)
    writer.append(make_events(60, start=131))
    await writer.close()
    assert len(await read_all(small)) == 191
    assert list(await small.salvage(ONE)) == []
    assert [*(place / "quarantine").iterdir()] == [kept]


@pytest.mark.usefixtures("place")
async def test_salvage_of_a_session_that_is_being_written_is_refused(
    small: LocalPersistence,
) -> None:
    writer = await small.open(ONE)
    with pytest.raises(SessionBusy):
        await small.salvage(ONE)
    await writer.close()


async def test_a_session_whose_header_is_lost_is_not_made_up(
    small: LocalPersistence, place: Path
) -> None:
    (place / "session.json").write_bytes(b"{")
    (damage,) = await small.verify(ONE)
    assert (damage.kind, damage.file, damage.count) == ("header", "session.json", None)
    with pytest.raises(SessionDamaged):
        await small.salvage(ONE)


CALLS = ("create", "append_to", "write", "sync", "rename", "sync_directory", "link")


class Cut(BaseException):
    """Ends whatever runs, as the end of the process would."""


def limit_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let only so many calls of the disk be made as the list says."""
    left = [10**9]
    for name in CALLS:
        real = getattr(disk, name)

        def call(*args: Any, real: Callable[..., Any] = real) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Cut
            return real(*args)

        monkeypatch.setattr(disk, name, call)
    return left


def harmed(place: Path, harm: str) -> dict[str, bytes]:
    files = {path.name: path.read_bytes() for path in place.iterdir()}
    bad = bytearray(files["log.jsonl.zst"])
    begin, frame, stop, _ = blocks_in(bad)[1]
    if harm == "frame":
        bad[frame:stop] = bytes(stop - frame)
    elif harm == "zone map":
        bad[begin + 20] ^= 1
    else:
        files["tail.jsonl"] = files["tail.jsonl"][:30] + b"?" + files["tail.jsonl"][31:]
    return {**files, "log.jsonl.zst": bytes(bad)}


def put_back(place: Path, files: dict[str, bytes]) -> None:
    for path in sorted(place.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for name, data in files.items():
        (place / name).write_bytes(data)


@pytest.mark.parametrize("harm", ["frame", "zone map", "tail"])
async def test_a_salvage_that_is_cut_short_anywhere_can_be_done_again(
    small: LocalPersistence, place: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    files = harmed(place, harm)
    left = limit_calls(monkeypatch)
    for step in range(100):
        put_back(place, files)
        before, _ = await read_with_gaps(small)
        left[0] = step
        done = False
        try:
            await small.salvage(ONE)
            done = True
        except Cut:
            pass
        left[0] = 10**9
        found, gaps = await read_with_gaps(small)
        real_ones = [event for event in found if event.type != "event/lost"]
        assert same(real_ones, before[: len(real_ones)])
        assert gaps or len(real_ones) == len(before)
        await small.salvage(ONE)
        assert list(await small.verify(ONE)) == []
        again = [event for event in await read_all(small) if event.type != "event/lost"]
        assert same(again, before)
        await (await small.open(ONE)).close()
        assert (place / "quarantine").exists()
        assert list(place.rglob(".*")) == []
        if done:
            assert step > 10
            break


async def test_a_session_with_a_hole_is_read_only_until_it_is_salvaged(
    small: LocalPersistence, root: Path
) -> None:
    await store(small, make_events(3), "two")
    tail = root / "two" / "tail.jsonl"
    lines = tail.read_bytes().splitlines(keepends=True)
    tail.write_bytes(b"".join([lines[0], lines[1], lines[3]]))
    async with await small.read(SessionId("two")) as log:
        assert log.end == 3
    with pytest.raises(SessionDamaged, match="salvage"):
        await small.open(SessionId("two"))
    (damage,) = await small.salvage(SessionId("two"))
    assert (damage.kind, damage.first, damage.count) == ("missing", 1, 1)
    assert (await small.open(SessionId("two"))).flushed == 3


async def test_readers_beside_a_salvage_see_the_old_log_or_the_new_and_never_a_mix(
    small: LocalPersistence, place: Path
) -> None:
    files = harmed(place, "frame")
    for _ in range(10):
        put_back(place, files)
        before, _ = await read_with_gaps(small)
        salvaging = asyncio.create_task(small.salvage(ONE))
        while not salvaging.done():
            found, gaps = await read_with_gaps(small)
            real = [event for event in found if event.type != "event/lost"]
            assert same(real, before[: len(real)])
            assert gaps or len(found) == 130
        await salvaging
        assert list(await small.verify(ONE)) == []


@pytest.mark.parametrize("file", ["tail.jsonl", "log.jsonl.zst", "session.json"])
async def test_a_file_that_is_something_else_is_damage(
    place: Path, small: LocalPersistence, file: str
) -> None:
    (place / file).unlink()
    (place / file).symlink_to("lock" if file != "session.json" else ".")
    with pytest.raises(SessionDamaged, match=file):
        await small.read(ONE)
