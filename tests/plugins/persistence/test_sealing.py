"""What is compressed, when, and that no moment of it costs or doubles an event."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import logging
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from heald_persistence import LogChanged, LogWriter, disk
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import blocks_in, make_events, make_header, read_all, same, store
from heald_persistence.writer import LocalWriter
from heald_session import Event, LogOffset, Seq, SessionId

ONE = SessionId("one")
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def small(make_backend: Callable[..., LocalPersistence]) -> LocalPersistence:
    """A backend whose frames hold 4000 bytes, and at the end of a session 1000."""
    return make_backend(seal_bytes=4000)


async def append_in_batches(writer: LogWriter, events: list[Event], size: int) -> None:
    for start in range(0, len(events), size):
        writer.append(events[start : start + size])
        await writer.flush()


async def write(backend: LocalPersistence, events: list[Event], size: int = 5) -> None:
    writer = await backend.create(make_header(), LogOffset(0))
    await append_in_batches(writer, events, size)
    await writer.close()


def shown(place: Path) -> list[int]:
    """Return the seqs that `zstdcat log.jsonl.zst; tail -n +2 tail.jsonl` shows."""
    text = b""
    if (place / "log.jsonl.zst").exists():
        data = io.BytesIO((place / "log.jsonl.zst").read_bytes())
        text = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
    text += (place / "tail.jsonl").read_bytes().split(b"\n", 1)[1]
    return [json.loads(line)["seq"] for line in text.splitlines()]


def header_of(place: Path) -> dict[str, Any]:
    header: dict[str, Any] = json.loads((place / "tail.jsonl").read_bytes().split(b"\n", 1)[0])
    return header


async def test_a_long_session_is_compressed_and_reads_back_byte_for_byte(
    small: LocalPersistence, root: Path
) -> None:
    events = make_events(150)
    await write(small, events)
    assert header_of(root / "one")["sealed"] == (root / "one" / "log.jsonl.zst").stat().st_size > 0
    assert same(await read_all(small), events)
    writer = await small.open(ONE)
    await append_in_batches(writer, make_events(30, start=150), 7)
    await writer.close()
    assert same(await read_all(small), make_events(180))
    assert shown(root / "one") == list(range(180))


async def test_zstdcat_shows_every_event_to_someone_without_heald(
    small: LocalPersistence, root: Path
) -> None:
    if shutil.which("zstdcat") is None:
        pytest.skip("zstdcat is not installed")
    await write(small, make_events(100))
    command = "zstdcat log.jsonl.zst; cat tail.jsonl"
    done = await asyncio.to_thread(
        subprocess.run, command, shell=True, cwd=root / "one", capture_output=True, check=True
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["seq"] for line in lines if "seq" in line] == list(range(100))


async def test_each_frame_is_behind_a_map_that_anybody_can_read(
    small: LocalPersistence, root: Path
) -> None:
    rare = make_events(1, start=40, type="acme/rare")
    await write(small, [*make_events(40), *rare, *make_events(59, start=41)])
    data = (root / "one" / "log.jsonl.zst").read_bytes()
    place = seq = 0
    holding: list[int] = []
    while place < len(data):
        assert data[place : place + 4] == b"\x5e\x2a\x4d\x18"
        begin = place + 8
        frame = begin + int.from_bytes(data[place + 4 : begin], "little")
        zone = json.loads(data[begin:frame])
        stop = frame + zone["stored"]
        parameters = zstandard.get_frame_parameters(data[frame:stop])
        assert (parameters.content_size, parameters.has_checksum) == (zone["raw"], True)
        lines = zstandard.ZstdDecompressor().decompress(data[frame:stop]).splitlines()
        events = [json.loads(line) for line in lines]
        assert [event["seq"] for event in events] == list(range(seq, seq + zone["count"]))
        assert (zone["since"], zone["until"]) == (events[0]["time"], events[-1]["time"])
        assert zone["types"] == sorted({event["type"] for event in events})
        holding += [seq] * ("acme/rare" in zone["types"])
        assert zone["first"] == seq
        place, seq = stop, seq + zone["count"]
    assert header_of(root / "one")["base"] == seq
    assert len(holding) == 1


async def test_nothing_small_is_compressed_and_closing_leaves_a_small_tail(
    backend: LocalPersistence, root: Path
) -> None:
    def filler(size: int, start: int) -> Event:
        return Event(Seq(start), "acme/note", 1, msgspec.Raw(b'"%b"' % (b"x" * size)))

    writer = await backend.create(make_header(), LogOffset(0))
    writer.append([filler(60_000, 0)])
    await writer.close()
    assert header_of(root / "one")["sealed"] == 0
    writer = await backend.open(ONE)
    for seq in range(1, 4):
        writer.append([filler(60_000, seq)])
        await writer.flush()
    assert header_of(root / "one")["sealed"] == 0
    await writer.close()
    assert header_of(root / "one")["base"] == 4
    assert len((root / "one" / "tail.jsonl").read_bytes().splitlines()) == 1
    assert len(await read_all(backend)) == 4


async def test_first_bytes_that_are_many_are_compressed_at_once(
    small: LocalPersistence, root: Path
) -> None:
    await store(small, make_events(200))
    assert header_of(root / "one")["sealed"] > 0
    assert same(await read_all(small), make_events(200))
    assert shown(root / "one") == list(range(200))


async def test_a_session_that_was_only_opened_is_left_as_it_is(
    make_backend: Callable[..., LocalPersistence], root: Path
) -> None:
    await store(make_backend(seal_bytes=10**6), make_events(100))
    before = {path.name: path.read_bytes() for path in (root / "one").iterdir()}
    await (await make_backend(seal_bytes=4000).open(ONE)).close()
    after = {path.name: path.read_bytes() for path in (root / "one").iterdir()}
    assert {**before, "lock": b""} == {**after, "lock": b""}


async def test_a_process_killed_at_any_step_of_sealing_loses_and_doubles_nothing(
    small: LocalPersistence, root: Path, start: Start
) -> None:
    out, err = start("seal-and-die", root.parent, "s").communicate()
    *said, steps = out.split("\n")[:-1] or [err]
    acknowledged = {name: int(length) for name, length in map(str.split, said)}
    assert int(steps) > 30
    for step in range(1, int(steps) + 1):
        name = f"s{step}"
        found = await read_all(small, name)
        assert same(found, make_events(len(found)))
        assert len(found) >= acknowledged.get(name, 3)
        writer = await small.open(SessionId(name))
        assert writer.flushed == len(found)
        assert shown(root / name) == list(range(len(found)))
        await append_in_batches(writer, make_events(40, start=len(found)), 20)
        await writer.close()
        assert same(await read_all(small, name), make_events(len(found) + 40))
        assert shown(root / name) == list(range(len(found) + 40))
        assert list(await small.verify(SessionId(name))) == []
        assert [path for path in (root / name).iterdir() if path.name.startswith(".")] == []


async def until_idle(writer: LogWriter) -> None:
    """Wait for what goes on after a flush has returned."""
    assert isinstance(writer, LocalWriter)
    if writer._commits is not None:
        await asyncio.wait({writer._commits})


CALLS = ("create", "append_to", "write", "sync", "rename", "sync_directory", "truncate")


@pytest.mark.parametrize("failures", [1, 10**9], ids=["once", "until mended"])
async def test_a_disk_that_fails_at_any_step_of_sealing_costs_nothing(
    small: LocalPersistence,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failures: int,
) -> None:
    caplog.set_level(logging.CRITICAL)
    calls = itertools.count(1)
    failing = range(0)
    for name in CALLS:
        real = getattr(disk, name)

        def call(*args: Any, real: Callable[..., Any] = real) -> Any:
            if next(calls) in failing:
                raise OSError(28, "No space left on device")
            return real(*args)

        monkeypatch.setattr(disk, name, call)
    for step in itertools.count(1):
        name = f"s{step}"
        writer = await small.create(make_header(name), LogOffset(0))
        await append_in_batches(writer, make_events(20), 20)
        first = next(calls) + step
        failing = range(first, first + failures)
        writer.append(make_events(30, start=20))
        writer.append(make_events(30, start=50))
        await asyncio.wait({asyncio.create_task(writer.flush())})
        await until_idle(writer)
        reached = next(calls) > first
        found = await read_all(small, name)
        assert same(found, make_events(len(found)))
        assert len(found) >= writer.flushed
        failing = range(0)
        await writer.flush()
        assert writer.not_saved is None
        await append_in_batches(writer, make_events(30, start=80), 10)
        await writer.close()
        assert same(await read_all(small, name), make_events(110))
        assert list(await small.verify(SessionId(name))) == []
        await (await small.open(SessionId(name))).close()
        assert shown(root / name) == list(range(110))
        if not reached:
            assert step > 8
            break


@pytest.mark.parametrize(
    ("reads", "batches"), [(50, 60), pytest.param(10_000, 300, marks=pytest.mark.crash)]
)
async def test_reads_beside_a_sealing_writer_show_no_gap_and_no_double(
    small: LocalPersistence, root: Path, start: Start, reads: int, batches: int
) -> None:
    count = 0
    for number in itertools.count():
        name = SessionId(f"s{number}")
        process = start("seal", root.parent, name, str(batches))
        while not (root / name).exists():
            assert process.poll() is None
            await asyncio.sleep(0.001)
        length = 0
        while process.poll() is None:
            length = await read_once(small, name, length)
            count += 1
        assert await read_once(small, name, length) == 5 * batches
        assert header_of(root / name)["sealed"] > 0
        if count >= reads:
            break


async def read_once(backend: LocalPersistence, name: SessionId, before: int) -> int:
    """Read a session that somebody writes; return its length."""
    async with await backend.read(name) as log:
        seqs = [event.seq async for batch in log.batches() for event in batch]
        assert seqs == list(range(log.end))
        assert log.end >= before
        return log.end


async def test_what_follows_the_sealed_bytes_is_read_by_nobody_and_cut_by_the_writer(
    small: LocalPersistence, root: Path
) -> None:
    events = make_events(100)
    await write(small, events)
    log = root / "one" / "log.jsonl.zst"
    good = log.read_bytes()
    for more in (b"\0" * 4096, b"garbage", good[: len(good) // 2], good):
        log.write_bytes(good + more)
        assert same(await read_all(small), events)
        assert list(await small.verify(ONE)) == []
        assert log.read_bytes() == good + more
        await (await small.open(ONE)).close()
        assert log.read_bytes() == good
    assert not (root / "one" / "quarantine").exists()


@pytest.mark.parametrize("change", ["removed", "cut"])
async def test_a_compressed_log_that_was_changed_under_its_writer_is_written_no_more(
    small: LocalPersistence, root: Path, change: str
) -> None:
    await write(small, make_events(100))
    writer = await small.open(ONE)
    log, tail = root / "one" / "log.jsonl.zst", root / "one" / "tail.jsonl"
    if change == "removed":
        log.unlink()
    else:
        log.write_bytes(log.read_bytes()[:-1])
    before = log.read_bytes() if log.exists() else None
    await append_in_batches(writer, make_events(60, start=100), 60)
    await until_idle(writer)
    with pytest.raises(LogChanged, match=r"log\.jsonl\.zst"):
        writer.append(make_events(1, start=160))
    await writer.close()
    assert (log.read_bytes() if log.exists() else None) == before
    assert len(tail.read_bytes().splitlines()) > 60


async def test_lines_that_no_frame_may_hold_stay_in_the_tail(
    small: LocalPersistence, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heald_persistence.sealing.FRAME_LIMIT", 900)
    events = make_events(60)
    await write(small, events)
    assert header_of(root / "one")["sealed"] == 0
    assert same(await read_all(small), events)


@pytest.mark.parametrize("index", ["removed", "empty", "garbage", "cut", "flipped", "another's"])
async def test_the_index_is_derived_and_is_mended_by_the_writer(
    small: LocalPersistence, root: Path, index: str
) -> None:
    events = make_events(200)
    await write(small, events)
    await store(small, make_events(150, type="acme/other"), "two")
    path = root / "one" / "log.idx"
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[150] ^= 4
    other = (root / "two" / "log.idx").read_bytes()
    contents = {"empty": b"", "garbage": b"x" * 999, "cut": good[:-30], "flipped": bytes(flipped)}
    if index == "removed":
        path.unlink()
    else:
        path.write_bytes(contents.get(index, other))
    assert same(await read_all(small), events)
    assert same(await read_all(small, types={"acme/note"}), events)
    assert list(await small.verify(ONE)) == []
    await (await small.open(ONE)).close()
    assert path.read_bytes() == good


async def test_only_frames_that_hold_a_wanted_type_are_decoded(
    small: LocalPersistence, root: Path
) -> None:
    rare = make_events(1, start=130, type="acme/rare")
    await write(small, [*make_events(130), *rare, *make_events(169, start=131)])
    for _ in range(2):
        async with await small.read(ONE) as log:
            found = [e async for batch in log.batches(types={"acme/rare"}) for e in batch]
            assert same(found, rare)
            assert log.frames_decoded == 1 + (header_of(root / "one")["base"] < 300)
        async with await small.read(ONE) as log:
            bounded = log.batches(stop=LogOffset(130), types={"acme/rare"})
            assert [e async for batch in bounded for e in batch] == []
        (root / "one" / "log.idx").unlink(missing_ok=True)


async def test_the_last_events_are_read_from_the_last_frames(small: LocalPersistence) -> None:
    await write(small, make_events(300))
    async with await small.read(ONE) as log:
        opened = log.bytes_read
        found = [e async for batch in log.batches(LogOffset(297)) for e in batch]
        assert same(found, make_events(3, start=297))
        assert log.frames_decoded <= 2
        assert log.bytes_read - opened < 12_000


async def test_a_hundred_resumes_of_a_long_session_add_little(
    make_backend: Callable[..., LocalPersistence], root: Path
) -> None:
    def size() -> int:
        return sum(path.stat().st_size for path in (root / "one").iterdir())

    await write(make_backend(), make_events(900), 300)
    before = size()
    for seq in range(900, 1000):
        writer = await make_backend().open(ONE)
        writer.append([Event(Seq(seq), "acme/note", 1, msgspec.Raw(b"{}"))])
        await writer.close()
    assert size() - before < 100_000
    assert len(await read_all(make_backend())) == 1000


async def test_an_index_that_lacks_a_block_gets_no_later_one(
    small: LocalPersistence, root: Path
) -> None:
    """Who reads it checks all records at once, so each must go on from the one before."""
    writer = await small.create(make_header(), LogOffset(0))
    await append_in_batches(writer, make_events(100), 5)
    index = root / "one" / "log.idx"
    whole = index.read_bytes()
    index.write_bytes(whole[:-84])
    await append_in_batches(writer, make_events(60, start=100), 5)
    assert index.read_bytes() == whole[:-84]
    assert same(await read_all(small), make_events(160))
    await writer.close()
    await (await small.open(ONE)).close()
    assert index.read_bytes()[: len(whole)] == whole
    assert len(index.read_bytes()) > len(whole)


async def test_the_frames_up_to_a_sessions_own_first_events_are_small(
    small: LocalPersistence, root: Path
) -> None:
    """Who lists sessions reads where their own events begin, and should not read much for it."""
    await write(small, make_events(150))
    first, *others, _ = zones_of(root / "one")
    assert 1000 <= first["raw"] < 2000
    assert all(frame["raw"] >= 4000 for frame in others)

    header = make_header("two", is_seeded=True, parent_session=ONE)
    writer = await small.fork(ONE, LogOffset(140), header)
    await append_in_batches(writer, make_events(150, start=140, type="acme/own"), 5)
    await writer.close()
    frames = zones_of(root / "two")
    (own,) = (f for f in frames if f["first"] <= 140 < f["first"] + f["count"])
    assert 1000 <= own["raw"] < 2000
    *after, _ = (frame for frame in frames if frame["first"] > 140)
    assert all(frame["raw"] >= 4000 for frame in after)


def zones_of(place: Path) -> list[dict[str, Any]]:
    return [zone for *_, zone in blocks_in((place / "log.jsonl.zst").read_bytes())]
