"""What looking sessions up costs, beside the least that could do."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Self
from unittest import mock

import apsw
import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))  # this file is run as a script

from benchmarks.query_search import one_by_one
from benchmarks.report import Measurement, main

from heald import Host, Row, open_host
from heald_persistence import StoredLog, session_persistence
from heald_query import SessionQuery, session_query
from heald_session import FORMAT_VERSION, Event, Header, LogOffset, Seq, SessionId

SESSIONS = 5_000
ROUNDS = 7
FIRST_LIMIT = 2
LATER_LIMIT = 3


class Facts(msgspec.Struct, frozen=True):
    """What a session's `session.json` holds."""

    header: Header
    inherited_event_count: int


@contextlib.asynccontextmanager
async def host_at(place: Path) -> AsyncIterator[Host]:
    """Open a host that finds sessions."""
    names = ("session", "persistence", "query")
    rows = [Row(id=name, plugin=name) for name in names]
    async with open_host(home=place, rows=rows, env={}, strict=True) as host:
        yield host


async def store(place: Path) -> None:
    """Store many small sessions."""
    async with host_at(place) as host:
        storage = host.scope.require(session_persistence)
        data = msgspec.Raw(msgspec.json.encode({"turn": 1}))
        for number in range(SESSIONS):
            header = Header(
                version=FORMAT_VERSION,
                id=SessionId(f"{number:016x}"),
                log_id=f"{number:032x}",
                created_at=1_700_000_000_000 + number * 7919 % SESSIONS,
                cwd=f"/home/somebody/projects/number-{number % 50}",
                agent_preset="standard",
            )
            writer = await storage.create(header, LogOffset(0))
            writer.append([Event(Seq(0), "turn/start", 1_700_000_000_000, data)])
            await writer.close()


def bare_scan(place: Path) -> list[Facts]:
    """Open, read and decode every header record."""
    decoder = msgspec.json.Decoder(Facts)
    found = []
    for entry in os.scandir(place / "sessions"):
        if not entry.name.startswith("."):
            with open(f"{entry.path}/session.json", "rb", buffering=0) as file:  # noqa: PTH123
                found.append(decoder.decode(file.read()))
    return found


def bare_query(place: Path) -> list[tuple[Any, ...]]:
    """Read every row of the corpus, and look once at each session's directory."""
    file = apsw.Connection(str(place / "cache" / "corpus-v1.sqlite"))
    try:
        rows = [*file.execute("SELECT * FROM sessions")]
    finally:
        file.close()
    for entry in os.scandir(place / "sessions"):
        if not entry.name.startswith("."):
            os.stat(entry.path)  # noqa: PTH116 - the least there is
    return rows


class Heartbeat:
    """A task that wants to run all the time, and notes how long it had to wait at most."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _beat(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.0005)
            self.longest = max(self.longest, time.perf_counter() - before - 0.0005)


async def timed(call: Awaitable[object]) -> float:
    """Return how long a call takes."""
    gc.collect()
    began = time.perf_counter()
    await call
    return time.perf_counter() - began


def timed_bare(call: Callable[[Path], object], place: Path) -> float:
    """Return how long a call takes that knows nothing of a loop."""
    gc.collect()
    began = time.perf_counter()
    call(place)
    return time.perf_counter() - began


def without_corpus(place: Path) -> None:
    """Delete the corpus."""
    for file in (place / "cache").glob("corpus-*"):
        file.unlink()


async def every(query: SessionQuery) -> None:
    """List every session, and see that they are all there."""
    if len(await query.list_sessions()) != SESSIONS:
        raise LookupError("some sessions are missing")


@contextlib.contextmanager
def counted_reads(host: Host) -> Iterator[list[StoredLog]]:
    """Note every log that is opened for reading."""
    storage = type(host.scope.require(session_persistence))
    real, opened = storage.read, []

    async def read(self: Any, *args: Any, **given: Any) -> StoredLog:
        opened.append(await real(self, *args, **given))
        return opened[-1]

    with mock.patch.object(storage, "read", read):
        yield opened


async def measure_lists(place: Path) -> AsyncIterator[Measurement]:
    """Measure first and later lists, by turns with what they are compared with."""
    await store(place)
    await asyncio.sleep(0.2)  # until a header can be told from one that is written over now
    scan: list[float] = []
    first: list[float] = []
    bodies = 0
    for _ in range(ROUNDS):
        scan.append(timed_bare(bare_scan, place))
        without_corpus(place)
        async with host_at(place) as host:
            query = host.scope.require(session_query)
            with counted_reads(host) as opened:
                first.append(await timed(every(query)))
            bodies += len(opened)
    yield Measurement("5,000 headers opened, read and decoded", min(scan) * 1e3, "ms")
    yield Measurement("a first list of 5,000 sessions", min(first) * 1e3, "ms")
    ratio = min(first) / min(scan)
    yield Measurement("a first list, beside the bare scan", ratio, "x", FIRST_LIMIT)
    bare: list[float] = []
    fresh: list[float] = []
    again: list[float] = []
    paged: list[float] = []
    for _ in range(ROUNDS):
        bare.append(timed_bare(bare_query, place))
        async with host_at(place) as host:
            query = host.scope.require(session_query)
            with counted_reads(host) as opened:
                fresh.append(await timed(every(query)))
                again.append(await timed(every(query)))
                page = query.list_sessions(order="-created", limit=50)
                paged.append(await timed(page))
            bodies += len(opened)
    yield Measurement("a query of 5,000 rows and as many stats", min(bare) * 1e3, "ms")
    for name, took in (
        ("a later process's first list", fresh),
        ("its next list", again),
        ("a page of 50 of them", paged),
    ):
        ratio = min(took) / min(bare)
        yield Measurement(f"{name}, beside that", ratio, "x", LATER_LIMIT)
    yield Measurement("event bodies opened by all these lists", bodies, "count", 0)
    async for measured in longest_blocks(place):
        yield measured


async def longest_blocks(place: Path) -> AsyncIterator[Measurement]:
    """Tell how long at most nothing else ran on the event loop while sessions were listed."""
    without_corpus(place)
    async with host_at(place) as host:
        query = host.scope.require(session_query)
        for name in ("a first", "a later"):
            async with Heartbeat() as pulse:
                await every(query)
            yield Measurement(
                f"the event loop's longest block in {name} list", pulse.longest * 1e3, "ms"
            )


def lists() -> Iterator[Measurement]:
    """Measure lists of many stored sessions."""
    with tempfile.TemporaryDirectory() as place, asyncio.Runner() as runner:
        measurements = measure_lists(Path(place))
        while (measured := runner.run(_next(measurements))) is not None:
            yield measured


async def _next(measurements: AsyncIterator[Measurement]) -> Measurement | None:
    return await anext(measurements, None)


if __name__ == "__main__":
    main(chain(lists(), one_by_one()))
