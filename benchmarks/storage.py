"""What keeping sessions costs: in syncs, in time beside the least that could do, and in room."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import zstandard

sys.path.insert(0, str(Path(__file__).parents[1]))  # this file is run as a script

from benchmarks.report import Measurement, main
from benchmarks.storage_peers import Store, absent, measured, stores

from heald import Host, Row, open_host
from heald_persistence import SessionPersistence, session_persistence
from heald_session import (
    FORMAT_VERSION,
    Event,
    Header,
    LogOffset,
    Seq,
    Session,
    SessionId,
    session_store,
)

EVENTS = 100_000
PRODUCERS = 64
EACH = 40
"""How often each producer appends and flushes."""
LONG = SessionId("long")
SLOW_SYNC = 200e-6
"""Seconds; where a sync takes less, sharing one saves nothing that matters."""
WORDS = [f"word{number}" for number in range(3000)]


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """What an inbox message must be, for the least that checking could cost."""

    id: str
    text: str
    lane: str = "queued"
    sender: str | None = None


@contextlib.asynccontextmanager
async def host_at(place: Path, **persistence: Any) -> AsyncIterator[Host]:
    """Open a host that keeps sessions in a folder."""
    rows = [Row("session", "session"), Row("persistence", "persistence", persistence)]
    async with open_host(home=place, rows=rows, env={}, strict=True) as host:
        yield host


def data_of(number: int) -> dict[str, str]:
    """Make the data of a message that compresses as prose does."""
    chance = random.Random(number)  # noqa: S311
    return {"id": str(number), "text": " ".join(chance.choices(WORDS, k=30))}


DATA = [data_of(number) for number in range(2000)]


def raw_sync(place: Path, count: int = 60) -> list[float]:
    """Return how long each of so many writes took with its sync, in seconds."""
    line = msgspec.json.encode(DATA[0])
    took = []
    with (place / "raw").open("ab", buffering=0) as file:
        for _ in range(count):
            began = time.perf_counter()
            file.write(line)
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    return took


async def produce(session: Session, count: int, took: list[float]) -> None:
    """Append an event and wait until it is durable, again and again."""
    for number in range(count):
        began = time.perf_counter()
        session.append("inbox/message", DATA[number % len(DATA)])
        await session.flush()
        took.append(time.perf_counter() - began)


async def durable_appends(place: Path) -> AsyncIterator[Measurement]:
    """Compare appends that are flushed with a sync for each."""
    async with host_at(place / "durable") as host:
        store = host.scope.require(session_store)
        one = await store.create(cwd=None)
        bare: list[float] = []
        alone: list[float] = []
        for _ in range(10):  # by turns, since what a disk and a scheduler take changes meanwhile
            bare += raw_sync(place)
            await produce(one, 60, alone)
        raw, p50 = statistics.median(bare), statistics.median(alone)
        slow = raw > SLOW_SYNC
        yield Measurement("a raw write and fdatasync, p50", raw * 1e6, "us")
        yield Measurement("one producer's durable append, beside that, p50", p50 / raw, "x", 3)
        took: list[float] = []
        began = time.perf_counter()
        await asyncio.gather(*(produce(one, EACH, took) for _ in range(PRODUCERS)))
        each = (time.perf_counter() - began) / len(took)
        yield Measurement("64 producers of one session", 1 / each, "events/s")
        limit = 1 / 8 if slow else None
        yield Measurement("their time an event, beside one sync for each", each / raw, "x", limit)
        sessions = [await store.create(cwd=None) for _ in range(PRODUCERS)]
        took = []
        began = time.perf_counter()
        await asyncio.gather(*(produce(session, EACH, took) for session in sessions))
        each = (time.perf_counter() - began) / len(took)
        yield Measurement("64 producers of 64 sessions", 1 / each, "events/s")


async def appends_in_memory(place: Path) -> AsyncIterator[Measurement]:
    """Compare appending in memory with encoding, decoding and checking the same events."""
    rows = [Row("session", "session")]
    count, best, least = 20_000, float("inf"), float("inf")
    async with open_host(home=place / "memory", rows=rows, env={}, strict=True) as host:
        store = host.scope.require(session_store)
        for _ in range(5):
            session = await store.create(cwd=None)
            began = time.perf_counter()
            for number in range(count):
                session.append("inbox/message", DATA[number % len(DATA)])
            best = min(best, time.perf_counter() - began)
            least = min(least, time_least(count))
    yield Measurement("appends in memory", count / best, "events/s")
    yield Measurement("their time, beside encoding, decoding and checking", best / least, "x", 3)


def time_least(count: int) -> float:
    """Return how long it takes to encode events, decode them and check their data."""
    began = time.perf_counter()
    for number in range(count):
        line = msgspec.json.encode(
            {
                "seq": number,
                "type": "inbox/message",
                "time": number,
                "data": DATA[number % len(DATA)],
            }
        )
        msgspec.convert(msgspec.json.decode(line, type=Event).data, Message)
    return time.perf_counter() - began


async def write_long(place: Path) -> None:
    """Store a session of many events, appended one by one, with a type that is rare."""
    chance = random.Random(1)  # noqa: S311
    async with host_at(place / "long") as host:
        backend = host.scope.require(session_persistence)
        header = Header(version=FORMAT_VERSION, id=LONG, log_id="long", created_at=1)
        writer = await backend.create(header, LogOffset(0))
        for seq in range(EVENTS):
            kind = "acme/rare" if seq in (31_000, 87_000) else "inbox/message"
            text = " ".join(chance.choices(WORDS, k=30))
            data = msgspec.Raw(msgspec.json.encode({"id": str(seq), "text": text}))
            writer.append([Event(Seq(seq), kind, 1 + seq, data)])
            if seq % 50 == 0:
                await writer.flush()
        await writer.close()


def blocks(log: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield each zone map and its frame, as they are stored."""
    place = 0
    while place < len(log):
        frame = place + 8 + int.from_bytes(log[place + 4 : place + 8], "little")
        zone = log[place + 8 : frame]
        place = frame + msgspec.json.decode(zone)["stored"]
        yield zone, log[frame:place]


def least_read(folder: Path, *, payloads: bool) -> int:
    """Decompress and decode everything, and do nothing else."""
    decoder, count = msgspec.json.Decoder(Event), 0
    tail = (folder / "tail.jsonl").read_bytes().split(b"\n", 1)[1]
    decompressor = zstandard.ZstdDecompressor()
    frames = [frame for _, frame in blocks((folder / "log.jsonl.zst").read_bytes())]
    for frame in [*frames, None]:
        lines = tail if frame is None else decompressor.decompress(frame)
        for event in decoder.decode_lines(lines):
            count += 1
            if payloads:
                msgspec.json.decode(event.encoded)
    return count


async def read(backend: SessionPersistence, *, payloads: bool, **selection: Any) -> int:
    """Read events of the long session; return how many."""
    count = 0
    async with await backend.read(LONG) as log:
        async for batch in log.batches(**selection):
            count += len(batch)
            if payloads:
                for event in batch:
                    event.data  # noqa: B018 - decodes it
    return count


async def timed(call: Callable[[], Awaitable[object]], rounds: int = 3) -> float:
    """Return the least time a call took."""
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        await call()
        best = min(best, time.perf_counter() - began)
    return best


async def reads(place: Path) -> AsyncIterator[Measurement]:
    """Compare reads with decompressing and decoding the same bytes."""
    folder = place / "long" / "sessions" / LONG
    async with host_at(place / "long") as host:
        backend = host.scope.require(session_persistence)
        full = 0.0
        for payloads in (True, False):
            gc.collect()
            ours, least = await in_turn(backend, folder, payloads=payloads)
            full = full or ours
            what = "payloads too" if payloads else "envelopes only"
            yield Measurement(f"cold read of 100,000 events, {what}", ours, "s")
            yield Measurement(f"the same beside the least, {what}", ours / least, "x", 1.5)
        again = [sys.executable, __file__, "--memory", str(place)]
        grown = int(subprocess.run(again, capture_output=True, check=True).stdout)  # noqa: S603, ASYNC221
        yield Measurement("growth of memory while iterating", grown / 2**20, "MiB", 50)
        async for measurement in selections(backend, folder, full):
            yield measurement


async def in_turn(
    backend: SessionPersistence, folder: Path, *, payloads: bool
) -> tuple[float, float]:
    """Time reading and the least that it could be, by turns."""
    ours = least = float("inf")
    for _ in range(5):
        ours = min(ours, await timed(lambda: read(backend, payloads=payloads), 1))
        began = time.perf_counter()
        assert least_read(folder, payloads=payloads) == EVENTS  # noqa: S101
        least = min(least, time.perf_counter() - began)
    return ours, least


async def memory_of(place: Path) -> int:
    """Return how much the resident memory of this process grows at most during a read."""
    async with host_at(place / "long") as host:
        backend = host.scope.require(session_persistence)
        await read(backend, payloads=True, stop=LogOffset(1000))
        gc.collect()
        before = most = resident()
        async with await backend.read(LONG) as log:
            async for batch in log.batches():
                for event in batch:
                    event.data  # noqa: B018 - decodes it
                most = max(most, resident())
    return most - before


def resident() -> int:
    """Return the resident memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def selections(
    backend: SessionPersistence, folder: Path, full: float
) -> AsyncIterator[Measurement]:
    """Count and time what reading a little takes."""
    zones = [zone for zone, _ in blocks((folder / "log.jsonl.zst").read_bytes())]
    holding = sum(b"acme/rare" in zone for zone in zones)
    yield Measurement("frames of the log", len(zones), "count")
    async with await backend.read(LONG) as log:
        found = [e async for batch in log.batches(types={"acme/rare"}) for e in batch]
        assert len(found) == 2  # noqa: PLR2004, S101
        decoded = log.frames_decoded
    tail = len((folder / "tail.jsonl").read_bytes().split(b"\n")) > 2  # noqa: PLR2004
    yield Measurement("frames decoded for a rare type", decoded, "count", holding + tail)
    rare = await timed(lambda: read(backend, payloads=True, types={"acme/rare"}), 9)
    yield Measurement("reading a rare type, beside all", rare / full, "x", 1 / 20)
    last = LogOffset(EVENTS - 50)
    async with await backend.read(LONG) as log:
        assert sum([len(batch) async for batch in log.batches(last)]) == 50  # noqa: PLR2004, S101
        yield Measurement("frames decoded for the last 50 events", log.frames_decoded, "count", 2)
        yield Measurement("bytes read for them", log.bytes_read, "bytes")
    few = await timed(lambda: read(backend, payloads=True, start=last), 9)
    yield Measurement("reading the last 50 events, beside all", few / full, "x")


async def forks(place: Path) -> AsyncIterator[Measurement]:
    """Compare forking a stored session with copying its file."""
    source = place / "long" / "sessions" / LONG / "log.jsonl.zst"
    ours = opened = copied = float("inf")
    async with host_at(place / "long") as host:
        store = host.scope.require(session_store)
        for _ in range(5):
            began = time.perf_counter()
            await store.fork_stored(LONG)
            ours = min(ours, time.perf_counter() - began)
            began = time.perf_counter()
            with source.open("rb") as old, (place / "copy").open("wb") as new:
                shutil.copyfileobj(old, new)
                new.flush()
                os.fsync(new.fileno())
            copied = min(copied, time.perf_counter() - began)
            began = time.perf_counter()
            await store.fork(LONG)
            opened = min(opened, time.perf_counter() - began)
    yield Measurement("fork of a stored session of 100,000 events", ours, "s")
    yield Measurement("the same beside copying its file", ours / copied, "x", 3)
    yield Measurement("the same, opened as a live session", opened, "s")


def sizes(place: Path) -> Iterator[Measurement]:
    """Compare the size of a log with that of the same lines compressed in one go."""
    log = (place / "long" / "sessions" / LONG / "log.jsonl.zst").read_bytes()
    decompressor = zstandard.ZstdDecompressor()
    raw = decompressor.stream_reader(log, read_across_frames=True).read()
    whole = len(zstandard.ZstdCompressor().compress(raw))
    yield Measurement("100,000 events on disk", len(log) / 10**6, "MB")
    yield Measurement("the same beside one go", len(log) / whole, "x", 1.2)


async def peers(place: Path) -> AsyncIterator[Measurement]:
    """Do the same with what people would otherwise use."""
    async with host_at(place / "beside") as host:
        session = await host.scope.require(session_store).create(cwd=None, id=SessionId("one"))

        async def append(data: dict[str, str]) -> None:
            session.append("inbox/message", data)
            await session.flush()

        async def read_all() -> list[object]:
            backend = host.scope.require(session_persistence)
            async with await backend.read(session.id) as log:
                return [event.data async for batch in log.batches() for event in batch]

        folder = place / "beside" / "sessions"
        for measurement in await measured("heald", Store(append, read_all), DATA, folder):
            yield measurement
    for name, store, folder in stores(place):
        for measurement in await measured(name, store, DATA, folder):
            yield measurement
    for measurement in absent():
        yield measurement


async def everything(place: Path) -> AsyncIterator[Measurement]:
    """Measure one thing after another."""
    async for measurement in durable_appends(place):
        yield measurement
    async for measurement in appends_in_memory(place):
        yield measurement
    await write_long(place)
    async for measurement in reads(place):
        yield measurement
    for measurement in sizes(place):
        yield measurement
    async for measurement in forks(place):
        yield measurement
    async for measurement in peers(place):
        yield measurement


def one_by_one() -> Iterator[Measurement]:
    """Run the measurements in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        measurements = everything(Path(folder))
        while (measurement := runner.run(anext(measurements, None))) is not None:
            yield measurement


if __name__ == "__main__":
    if "--memory" in sys.argv[1:]:  # asked in a process that has done nothing else yet
        print(asyncio.run(memory_of(Path(sys.argv[2]))))
    else:
        main(one_by_one())
