"""The one cold read: what it costs, what it can fail with, and that it lets go of everything."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from heald import Cancelled, CancelToken, HealdError, Host, Row
from heald.testing import HostFactory
from heald_persistence import Damage, LogChanged, SessionDamaged, StoredLog, session_persistence
from heald_projection_cache import projection_cache
from heald_query import SessionQuery, session_query
from heald_session import (
    APPEND,
    Event,
    Header,
    LogOffset,
    Seq,
    Session,
    SessionId,
    SessionNotFound,
    session_store,
)

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]
ONE = SessionId("one")
KEYS = ("title", "sessionStats")


@pytest.fixture
def open_small(heald_host: HostFactory) -> OpenHost:
    """Open a host that seals small frames and keeps little of a session in memory."""

    def opened(*, without: tuple[str, ...] = ()) -> Any:
        rows = [
            Row("session", "session", {"hot_events": 10, "hot_bytes": 10_000}),
            Row("persistence", "persistence", {"seal_bytes": 65_536}),
            *(Row(name, name) for name in ("projection", "projection-cache", "query")),
        ]
        return heald_host(rows=[row for row in rows if row.id not in without])

    return opened


def query_of(host: Host) -> SessionQuery:
    return host.scope.require(session_query)


def take_turn(session: Session, turn: int) -> None:
    session.append("turn/start", {"turn": turn})
    data = {"id": f"m{turn}", "text": f"Prompt {turn} " + "x" * 1000}
    session.append("user/message", data, surface=APPEND)
    session.append("turn/end", {"turn": turn, "outcome": "completed"})


async def long_session(host: Host, turns: int) -> Session:
    session = await host.scope.require(session_store).create(cwd="/loom", id=ONE)
    for turn in range(turns):
        take_turn(session, turn)
        await session.flush()
    return session


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Callable[[Host], list[StoredLog]]:
    """Keep every log that is opened for reading from now on."""

    def watch(host: Host) -> list[StoredLog]:
        opened: list[StoredLog] = []
        storage = type(host.scope.require(session_persistence))
        real = storage.read

        async def read(self: Any, *args: Any, **given: Any) -> StoredLog:
            opened.append(await real(self, *args, **given))
            return opened[-1]

        monkeypatch.setattr(storage, "read", read)
        return opened

    return watch


async def test_a_read_from_a_checkpoint_decodes_no_block_twice(
    open_small: OpenHost, logs: Callable[[Host], list[StoredLog]], heald_home: Path
) -> None:
    async with open_small() as host:
        session = await long_session(host, 700)
        await host.scope.require(projection_cache).save(session)
    async with open_small() as host:
        cache = host.scope.require(projection_cache)
        storage = host.scope.require(session_persistence)
        kept = await cache.checkpoint(session.header, session.cut, KEYS)
        assert kept is not None
        writer = await storage.open(ONE)
        data = msgspec.Raw(b'{"turn": 1000}')
        for number in range(100):
            event = Event(Seq(session.end + number), "turn/start", 2_000_000_000_000, data)
            writer.append([event])
        await writer.close()
        opened = logs(host)
        async with query_of(host).observe_session(ONE, KEYS) as observed:
            assert observed.state("sessionStats")["turns"] == 800
        [log] = opened
        assert log.end - kept.offset == 100
        assert log.frames_decoded <= 2
        place = heald_home / "sessions" / "one"
        sizes = [(place / name).stat().st_size for name in ("tail.jsonl", "log.idx")]
        frames = (place / "log.jsonl.zst").stat().st_size // 10  # of more than ten one was read
        assert log.bytes_read < sum(sizes) + frames + 2 * 1024


async def test_without_a_checkpoint_only_the_frames_that_the_keys_need_are_decoded(
    open_small: OpenHost, logs: Callable[[Host], list[StoredLog]]
) -> None:
    async with open_small() as host:
        storage = host.scope.require(session_persistence)
        header = Header(version=1, id=ONE, log_id="one", created_at=1)
        writer = await storage.create(header, LogOffset(0))
        for seq in range(1000):
            rare = seq == 500
            data = {"title": "Mine"} if rare else {"text": "x" * 1000}
            kind = "session/renamed" if rare else "acme/note"
            writer.append([Event(Seq(seq), kind, 1, msgspec.Raw(msgspec.json.encode(data)))])
            await writer.flush()
        await writer.close()
        opened = logs(host)
        async with query_of(host).observe_session(ONE, ["title"]) as observed:
            assert observed.projections.values["title"] == {"text": "Mine"}
        assert opened[0].frames_decoded <= 2


async def test_a_live_read_asks_storage_only_for_what_is_not_in_memory(
    open_small: OpenHost, logs: Callable[[Host], list[StoredLog]]
) -> None:
    async with open_small() as host:
        session = await long_session(host, 40)
        assert session.hot_from > 0
        opened = logs(host)
        async with query_of(host).observe_session(ONE, KEYS) as observed:
            assert observed.state("sessionStats")["turns"] == 40
            assert [e.seq async for e in observed.events(session.hot_from)] == [
                event.seq for event in session.hot()
            ]
        window = await query_of(host).read_window(ONE, session.hot_from, session.end)
        assert len(window.items) == session.end - session.hot_from
        assert opened == []
        async with query_of(host).observe_session(ONE, KEYS, at=LogOffset(3)) as observed:
            assert observed.state("sessionStats")["turns"] == 1
        assert len(opened) == 1


def descriptors(home: Path) -> list[str]:
    """Return which files of a home's sessions this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(link.readlink()))
    return sorted(one for one in found if one.startswith(str(home.resolve() / "sessions")))


on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc")


@on_linux
async def test_every_failure_has_a_code_of_its_own_and_lets_go(
    open_small: OpenHost, heald_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_small(without=("projection-cache",)) as host:
        session = await long_session(host, 800)  # more than is read while it is opened
        await host.scope.require(session_store).dispose(session)
        log = heald_home / "sessions" / "one" / "log.jsonl.zst"
        good = log.read_bytes()
        codes = [await code_of(host, SessionId("nobody"))]
        log.write_bytes(good[:-10] + b"damaged...")
        codes.append(await code_of(host, ONE))
        log.write_bytes(good)

        cancel = CancelToken()
        async with await host.scope.require(session_persistence).read(ONE) as opened:
            kind = type(opened)
        batches = kind.batches

        def meddling(meddle: Callable[[], object]) -> None:
            async def read(self: Any, *args: Any, **given: Any) -> Any:
                meddle()
                async for batch in batches(self, *args, **given):
                    yield batch

            monkeypatch.setattr(kind, "batches", read)

        meddling(lambda: os.truncate(log, len(good) - 10))
        codes.append(await code_of(host, ONE))
        log.write_bytes(good)
        meddling(lambda: cancel.cancel("enough"))
        codes.append(await code_of(host, ONE, cancel=cancel))
        assert codes == [
            SessionNotFound.code,
            SessionDamaged.code,
            LogChanged.code,
            Cancelled.code,
        ]
        assert descriptors(heald_home) == []


async def code_of(host: Host, id: SessionId, **given: Any) -> str:  # noqa: A002
    with pytest.raises(HealdError) as failed:
        async with query_of(host).observe_session(id, ("sessionListMetadata",), **given):
            pass
    return failed.value.code


@on_linux
async def test_a_task_that_is_cancelled_at_any_point_of_a_read_lets_go(
    open_small: OpenHost, heald_home: Path
) -> None:
    async with open_small() as host:
        session = await long_session(host, 100)
        await host.scope.require(projection_cache).save(session)
        await host.scope.require(session_store).dispose(session)
        entered = asyncio.Event()

        async def observe() -> None:
            async with query_of(host).observe_session(ONE, KEYS) as observed:
                async for _ in observed.events():
                    pass
                entered.set()

        steps = 0
        while not entered.is_set():
            steps += 1
            task = asyncio.create_task(observe())
            for _ in range(steps):
                await asyncio.sleep(0)
                if not task.done():
                    await asyncio.to_thread(lambda: None)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            while descriptors(heald_home):  # what a thread was opening is closed when it is opened
                await asyncio.to_thread(lambda: None)
        assert steps > 3


@on_linux
async def test_a_task_that_is_cancelled_while_it_lets_go_lets_go_all_the_same(
    open_small: OpenHost, heald_home: Path
) -> None:
    async with open_small() as host:
        session = await long_session(host, 1)
        await host.scope.require(session_store).dispose(session)
        threads = ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(threads)
        read, leave = asyncio.Event(), asyncio.Event()
        begun, busy = threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            busy.wait(10)

        async def observe() -> None:
            async with query_of(host).observe_session(ONE):
                read.set()
                await leave.wait()

        task = asyncio.create_task(observe())
        await read.wait()
        threads.submit(work)
        begun.wait(10)
        leave.set()
        for _ in range(3):  # steps until it waits for a thread to close what it read
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        busy.set()
        await asyncio.to_thread(lambda: None)
        assert descriptors(heald_home) == []


async def test_damage_matters_only_if_it_could_hold_a_selected_type(
    open_small: OpenHost, heald_home: Path
) -> None:
    async with open_small() as host:
        storage = host.scope.require(session_persistence)
        header = Header(version=1, id=ONE, log_id="one", created_at=1)
        writer = await storage.create(header, LogOffset(0))
        chance = random.Random(1)
        for seq in range(300):
            kind = "turn/start" if seq < 3 else "acme/note"
            data = {"turn": 1} if seq < 3 else {"text": chance.randbytes(500).hex()}
            writer.append([Event(Seq(seq), kind, 1, msgspec.Raw(msgspec.json.encode(data)))])
            await writer.flush()
        await writer.close()
        log = heald_home / "sessions" / "one" / "log.jsonl.zst"
        stored = bytearray(log.read_bytes())
        assert len(stored) > 70_000
        stored[-10] ^= 0xFF
        log.write_bytes(stored)
        query = query_of(host)
        async with query.observe_session(ONE, ["sessionStats"]) as observed:
            assert observed.state("sessionStats")["turns"] == 3
            with pytest.raises(SessionDamaged):
                async for _ in observed.events():
                    pass
        window = await query.read_window(ONE, LogOffset(0), LogOffset(300))
        gaps = [one for one in window.items if isinstance(one, Damage)]
        assert len(gaps) == 1
        count = gaps[0].count
        assert count is not None
        assert count > 0
        seqs = [one.seq for one in window.items if isinstance(one, Event)]
        assert seqs == sorted(seqs)
        assert len(seqs) + count == 300
        window = await query.read_window(ONE, LogOffset(0), LogOffset(300), types=["turn/start"])
        assert [type(one) for one in window.items] == [Event] * 3


async def test_a_window_is_what_there_is_of_it_live_and_stored(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        session = await host.scope.require(session_store).create(cwd=None, id=ONE)
        for turn in (1, 2):
            take_turn(session, turn)
        await session.flush()
        query = query_of(host)
        for _ in ("live", "stored"):
            for start, stop, wanted in (
                (0, 6, [0, 1, 2, 3, 4, 5]),
                (2, 4, [2, 3]),
                (4, 99, [4, 5]),
                (9, 12, []),
                (4, 2, []),
                (-3, 1, [0]),
            ):
                window = await query.read_window(ONE, LogOffset(start), LogOffset(stop))
                assert [one.seq for one in window.items if isinstance(one, Event)] == wanted
                assert (window.header, window.end) == (session.header, 6)
                assert window.stop - window.start == len(wanted)
            window = await query.read_window(
                ONE, LogOffset(1), LogOffset(6), types=("turn/start", "turn/end")
            )
            assert [one.seq for one in window.items if isinstance(one, Event)] == [2, 3, 5]
            if not session.closed:
                await host.scope.require(session_store).dispose(session)
        with pytest.raises(SessionNotFound, match="did you mean 'one'"):
            await query.read_window(SessionId("ome"), LogOffset(0), LogOffset(1))
        cancel = CancelToken()
        cancel.cancel("enough")
        with pytest.raises(Cancelled):
            await query.read_window(ONE, LogOffset(0), LogOffset(1), cancel=cancel)
