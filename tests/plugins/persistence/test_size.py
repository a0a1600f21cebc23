"""How much a log takes, on disk and in memory, however it was written."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest

from heald_persistence import LogWriter, disk
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import make_header
from heald_session import Event, LogOffset, Seq, SessionId

MEBIBYTE = 1024 * 1024
WORDS = [f"word{number}" for number in range(2000)]


def events_of(count: int, start: int = 0) -> Iterable[Event]:
    """Make events that compress as prose does."""
    chance = random.Random(start)
    for seq in range(start, start + count):
        data = {"n": seq, "text": " ".join(chance.choices(WORDS, k=25))}
        yield Event(Seq(seq), "acme/note", 1 + seq, msgspec.Raw(msgspec.json.encode(data)))


async def write(backend: LocalPersistence, name: str, events: list[Event], size: int) -> None:
    writer = await backend.create(make_header(name), LogOffset(0))
    for start in range(0, len(events), size):
        writer.append(events[start : start + size])
        await writer.flush()
    await writer.close()


@pytest.fixture
def without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "sync", lambda _: None)
    monkeypatch.setattr(disk, "sync_directory", lambda _: None)


@pytest.mark.usefixtures("without_syncs")
@pytest.mark.parametrize("count", [6000, pytest.param(100_000, marks=pytest.mark.crash)])
async def test_tiny_batches_take_little_more_than_all_at_once(
    make_backend: Callable[..., LocalPersistence], root: Path, count: int
) -> None:
    events = list(events_of(count))
    await write(make_backend(), "tiny", events, 1)
    together = make_backend(queue_bytes=10**9)
    await write(together, "whole", events, count)
    sizes = {name: (root / name / "log.jsonl.zst").stat().st_size for name in ("tiny", "whole")}
    assert (root / "tiny" / "tail.jsonl").stat().st_size < 64 * 1024 + 200
    one_go = sizes["whole"] if count < 100_000 else one_frame(root / "whole")
    assert sizes["tiny"] <= 1.2 * one_go


def one_frame(place: Path) -> int:
    """Compress a whole log in one go and return its size."""
    import zstandard

    data = (place / "log.jsonl.zst").read_bytes()
    decompressor = zstandard.ZstdDecompressor()
    raw = decompressor.stream_reader(data, read_across_frames=True).read()
    return len(zstandard.ZstdCompressor().compress(raw))


@pytest.mark.usefixtures("without_syncs")
@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.crash)])
async def test_iterating_takes_no_memory_to_speak_of(
    make_backend: Callable[..., LocalPersistence], count: int
) -> None:
    backend = make_backend(queue_bytes=10**9)
    await write(backend, "one", list(events_of(count)), 1000)
    gc.collect()
    async with await backend.read(SessionId("one")) as log:
        tracemalloc.start()
        try:
            seen = 0
            async for batch in log.batches():
                seen += sum(len(event.data) // 2 for event in batch)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert seen == count
    assert peak < 10 * MEBIBYTE


async def test_what_a_turn_writes_does_not_depend_on_the_sessions_length(
    make_backend: Callable[..., LocalPersistence], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = make_backend(queue_bytes=10**9)
    written = [0]
    real = disk.write

    def write_counted(fd: int, data: bytes) -> None:
        written[0] += len(data)
        real(fd, data)

    monkeypatch.setattr(disk, "write", write_counted)
    costs = []
    for length in (10, 20_000):
        writer = await backend.create(make_header(f"s{length}"), LogOffset(0))
        writer.append(list(events_of(length)))
        await writer.flush()
        before = written[0]
        await append(writer, list(events_of(20, length)))
        costs.append(written[0] - before)
        await writer.discard()
    assert costs[1] < costs[0] * 1.1


async def append(writer: LogWriter, events: list[Event]) -> None:
    for event in events:
        writer.append([event])
        await writer.flush()
