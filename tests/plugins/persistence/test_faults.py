"""What happens when the disk fails, at any of its calls."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import asyncio
import errno
import itertools
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from heald_persistence import LogWriter, SessionNotSaved, disk
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import make_events, make_header, read_all, same, store
from heald_session import LogOffset, SessionId

ONE = SessionId("one")
FOR_LONG = 10**9
CALLS = ("create", "append_to", "write", "sync", "rename", "sync_directory", "make_directory")
FAULTS = {
    "ENOSPC": OSError(errno.ENOSPC, "No space left on device"),
    "EIO": OSError(errno.EIO, "Input/output error"),
}


@attrs.define
class Disk:
    """The disk, failing from one of its calls on, for as many calls as are asked."""

    first: int = FOR_LONG
    count: int = FOR_LONG
    error: OSError = FAULTS["EIO"]
    made: list[str] = attrs.field(factory=list)
    failed: set[int] = attrs.field(factory=set)
    """The inodes that a write or sync failed on."""
    used_again: list[int] = attrs.field(factory=list)

    def call(self, name: str, real: Callable[..., Any], *args: Any) -> Any:
        self.made.append(name)
        inode = os.fstat(args[0]).st_ino if name in ("write", "sync") else None
        if inode in self.failed:
            self.used_again.append(len(self.made))
        if self.first <= len(self.made) < self.first + self.count:
            if inode is not None:
                self.failed.add(inode)
            raise self.error
        result = real(*args)
        if name == "create":  # a new file may get the number of one that is gone
            self.failed.discard(os.fstat(result).st_ino)
        return result

    def mend(self) -> None:
        self.first = FOR_LONG


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Disk:
    state = Disk()

    def wrap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: state.call(name, real, *args)

    for name in CALLS:
        monkeypatch.setattr(disk, name, wrap(name, getattr(disk, name)))
    return state


async def opened(backend: LocalPersistence) -> LogWriter:
    await store(backend, make_events(2))
    return await backend.open(ONE)


def fill(writer: LogWriter) -> int:
    """Append until no more is taken; return the length of the log."""
    for seq in itertools.count(2):
        try:
            writer.append(make_events(1, start=seq))
        except SessionNotSaved:
            return seq
    raise AssertionError


async def settled_trouble(writer: LogWriter) -> str:
    while writer.not_saved is None:  # noqa: ASYNC110 - nothing tells of it, it is there to be looked at
        await asyncio.sleep(0)
    return writer.not_saved


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_disk_that_fails_for_long_is_said_at_once_and_loses_nothing(
    make_backend: Callable[..., LocalPersistence], failing: Disk, fault: str
) -> None:
    backend = make_backend()
    writer = await opened(backend)
    failing.error, failing.first = FAULTS[fault], len(failing.made) + 1
    writer.append(make_events(1, start=2))
    assert await settled_trouble(writer) == FAULTS[fault].strerror
    for start in (3, 4):
        writer.append(make_events(1, start=start))
        with pytest.raises(SessionNotSaved, match="not being saved") as refused:
            await writer.flush()
        assert refused.value.code == "SESSION_NOT_SAVED"
    assert writer.flushed == 2
    assert same(await read_all(backend), make_events(2))

    failing.mend()
    await writer.flush()
    assert (writer.flushed, writer.not_saved) == (5, None)
    writer.append(make_events(1, start=5))
    await writer.close()
    assert same(await read_all(make_backend()), make_events(6))
    assert failing.used_again == []


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("calls", [1, FOR_LONG], ids=["once", "until mended"])
async def test_a_fault_at_any_call_of_an_append_costs_nothing(
    make_backend: Callable[..., LocalPersistence], root: Path, failing: Disk, fault: str, calls: int
) -> None:
    failing.error = FAULTS[fault]
    for step in itertools.count(1):
        name = f"s{step}"
        await store(make_backend(), make_events(2), name)
        writer = await make_backend().open(SessionId(name))
        failing.failed.clear()
        failing.first = begin = len(failing.made) + step
        failing.count = calls
        await _append_and_mend(writer, failing)
        await writer.close()
        assert same(await read_all(make_backend(), name), make_events(5))
        assert sorted(p.name for p in (root / name).iterdir()) == [
            "lock",
            "session.json",
            "tail.jsonl",
        ]
        if len(failing.made) < begin:
            assert step > 2
            break
    assert failing.used_again == []


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("calls", [1, FOR_LONG], ids=["once", "until mended"])
async def test_a_fault_at_any_call_of_the_first_flush_leaves_all_or_nothing(
    make_backend: Callable[..., LocalPersistence], root: Path, failing: Disk, fault: str, calls: int
) -> None:
    failing.error = FAULTS[fault]
    root.mkdir()
    for step in itertools.count(1):
        name = f"s{step}"
        failing.failed.clear()
        failing.first = begin = len(failing.made) + step
        failing.count = calls
        writer = await make_backend().create(make_header(name), LogOffset(0))
        writer.append(make_events(2))
        try:
            await writer.flush()
        except SessionNotSaved:
            assert writer.flushed == 0
        listed = {stored.name: stored.problem for stored in await make_backend().list()}
        if name in listed:
            assert listed[name] is None
            assert same(await read_all(make_backend(), name), make_events(2))
        failing.first = max(failing.first, len(failing.made) + 1)
        failing.mend()
        writer.append(make_events(3, start=2))
        await writer.close()
        assert same(await read_all(make_backend(), name), make_events(5))
        assert [p.name for p in root.iterdir() if p.name.startswith(".")] == []
        if len(failing.made) < begin:
            assert step > 8
            break


async def _append_and_mend(writer: LogWriter, failing: Disk) -> None:
    writer.append(make_events(1, start=2))
    try:
        await writer.flush()
    except SessionNotSaved:
        assert writer.flushed == 2
        assert writer.not_saved is not None
    else:
        assert writer.flushed == 3
    writer.append(make_events(1, start=3))
    failing.mend()
    await writer.flush()
    writer.append(make_events(1, start=4))
    await writer.flush()
    assert (writer.flushed, writer.not_saved) == (5, None)


async def test_a_short_write_is_answered_with_a_new_file(
    backend: LocalPersistence, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = await opened(backend)
    tail = root / "one" / "tail.jsonl"
    inode, real = tail.stat().st_ino, os.write
    short = [True]

    def write(fd: int, data: bytes) -> int:
        return real(fd, data[: len(data) // 2]) if short and short.pop() else real(fd, data)

    monkeypatch.setattr(os, "write", write)
    writer.append(make_events(2, start=2))
    await writer.flush()
    assert tail.stat().st_ino != inode
    await writer.close()
    assert same(await read_all(backend), make_events(4))


async def test_a_saved_part_that_does_not_read_back_is_never_written_again(
    backend: LocalPersistence, root: Path, failing: Disk
) -> None:
    writer = await opened(backend)
    failing.first = len(failing.made) + 1
    writer.append(make_events(1, start=2))
    with pytest.raises(SessionNotSaved):
        await writer.flush()
    tail = root / "one" / "tail.jsonl"
    rotten = tail.read_bytes().replace(b'"n":1', b'"n":7')
    tail.write_bytes(rotten)
    failing.mend()
    with pytest.raises(SessionNotSaved, match="does not read back"):
        await writer.flush()
    assert tail.read_bytes() == rotten
    await writer.discard()


async def test_a_full_queue_refuses_further_events_and_keeps_those_it_has(
    make_backend: Callable[..., LocalPersistence], failing: Disk
) -> None:
    backend = make_backend(queue_bytes=400)
    writer = await opened(backend)
    failing.first = len(failing.made) + 1
    seq = fill(writer)
    assert 2 < seq < 10
    with pytest.raises(SessionNotSaved, match="bytes are waiting"):
        writer.append(make_events(1, start=seq))
    failing.mend()
    await writer.flush()
    writer.append(make_events(1, start=seq))
    await writer.close()
    assert same(await read_all(backend), make_events(seq + 1))


async def test_one_event_larger_than_the_queue_is_taken_by_an_empty_one(
    make_backend: Callable[..., LocalPersistence],
) -> None:
    backend = make_backend(queue_bytes=1)
    writer = await opened(backend)
    writer.append(make_events(1, start=2))
    await writer.close()
    assert same(await read_all(backend), make_events(3))


async def test_events_that_cannot_be_saved_when_a_writer_closes_are_counted_in_the_log(
    backend: LocalPersistence, failing: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    writer = await opened(backend)
    failing.first = len(failing.made) + 1
    writer.append(make_events(3, start=2))
    await writer.close()
    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert "3 events of session 'one'" in record.getMessage()
    failing.mend()
    await (await backend.open(ONE)).close()


async def test_what_queued_during_a_sync_goes_out_together(
    backend: LocalPersistence, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = await opened(backend)
    go, started = threading.Event(), threading.Event()
    syncs: list[int] = []
    real = disk.sync

    def sync(fd: int) -> None:
        syncs.append(os.fstat(fd).st_size)
        started.set()
        assert go.wait(30)
        real(fd)

    monkeypatch.setattr(disk, "sync", sync)
    writer.append(make_events(1, start=2))
    assert await asyncio.to_thread(started.wait, 30)
    for seq in range(3, 103):
        writer.append(make_events(1, start=seq))
    flushes = [asyncio.create_task(writer.flush()) for _ in range(5)]
    await asyncio.sleep(0)
    assert writer.flushed == 2
    go.set()
    await asyncio.gather(*flushes)
    assert len(syncs) == 2
    await writer.close()
    assert same(await read_all(backend), make_events(103))
