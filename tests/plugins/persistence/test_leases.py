"""One session has one writer, whoever else tries, in this process or another."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from heald_persistence import LogChanged, SessionBusy
from heald_persistence.lease import Held, Lease
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import make_events, read_all, same, store
from heald_session import SessionId

Start = Callable[..., subprocess.Popen[str]]
ONE = SessionId("one")


def line_of(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    words = process.stdout.readline().split()
    if not words:
        assert process.stderr is not None
        pytest.fail(process.stderr.read())
    return words


async def test_a_writer_in_another_process_is_named_and_readers_go_on(
    backend: LocalPersistence, root: Path, start: Start
) -> None:
    await store(backend, make_events(2))
    other = start("hold", root.parent, "one")
    assert line_of(other) == ["held"]
    before = (root / "one" / "tail.jsonl").read_bytes()
    with pytest.raises(SessionBusy, match=rf"process {other.pid} on .+ since 20") as busy:
        await backend.open(ONE)
    assert busy.value.code == "SESSION_BUSY"
    assert len(await read_all(backend)) == 2
    assert (root / "one" / "tail.jsonl").read_bytes() == before
    other.communicate("")
    await (await backend.open(ONE)).close()


async def test_a_killed_writer_lets_go_and_a_child_that_outlives_it_holds_nothing(
    backend: LocalPersistence, root: Path, start: Start
) -> None:
    await store(backend, make_events(2))
    other = start("hold-and-fork", root.parent, "one")
    child = int(line_of(other)[1])
    try:
        with pytest.raises(SessionBusy):
            await backend.open(ONE)
        other.kill()
        other.wait()
        os.kill(child, 0)
        await (await backend.open(ONE)).close()
    finally:
        os.kill(child, signal.SIGKILL)


async def test_what_a_forked_child_does_frees_nothing(
    backend: LocalPersistence,
) -> None:
    await store(backend, make_events(1))
    writer = await backend.open(ONE)
    program = "import os; os.closerange(3, 256)"
    run = partial(subprocess.run, [sys.executable, "-c", program], check=True, close_fds=False)
    await asyncio.to_thread(run)
    with pytest.raises(SessionBusy):
        await backend.open(ONE)
    writer.append(make_events(1, start=1))
    await writer.close()


async def test_closing_another_descriptor_of_the_lock_does_not_drop_it(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(1))
    writer = await backend.open(ONE)
    (root / "one" / "lock").open("rb").close()
    with pytest.raises(SessionBusy):
        await backend.open(ONE)
    await writer.close()


@pytest.mark.parametrize("text", ["", "{", '{"pid": 1, "host": "elsewhere", "since": 1}', "\x00"])
async def test_text_without_a_lock_means_nothing(
    backend: LocalPersistence, root: Path, text: str
) -> None:
    await store(backend, make_events(1))
    (root / "one" / "lock").write_text(text)
    writer = await backend.open(ONE)
    signed = json.loads((root / "one" / "lock").read_bytes())
    assert signed["pid"] == os.getpid()
    await writer.close()


@pytest.mark.parametrize("text", ["", "nonsense", '{"pid": -1, "host": "", "since": 9e99}'])
async def test_a_lock_is_held_whatever_its_text_says(
    backend: LocalPersistence, root: Path, text: str
) -> None:
    await store(backend, make_events(1))
    lock = root / "one" / "lock"
    lock.write_text(text)
    with lock.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(SessionBusy, match="another handle"):
            await backend.open(ONE)


async def test_a_session_whose_lock_file_is_gone_can_be_opened(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(1))
    (root / "one" / "lock").unlink()
    await (await backend.open(ONE)).close()


async def test_a_writer_whose_lock_was_removed_writes_no_more(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(1))
    first = await backend.open(ONE)
    (root / "one" / "lock").unlink()
    second = await backend.open(ONE)
    with pytest.raises(LogChanged, match="lock"):
        first.append(make_events(1, start=1))
    second.append(make_events(1, start=1))
    await second.close()
    await first.close()
    assert same(await read_all(backend), make_events(2))


def test_a_lease_is_signed_and_taken_once(tmp_path: Path) -> None:
    lease = Lease.take(tmp_path / "lock", 5)
    with pytest.raises(Held, match=str(os.getpid())):
        Lease.take(tmp_path / "lock", 6)
    lease.close()
    lease.close()
    Lease.take(tmp_path / "lock", 7).close()


@pytest.mark.parametrize("change", ["removed", "replaced", "cut", "grown", "directory removed"])
async def test_a_log_that_was_changed_under_its_writer_is_written_no_more(
    backend: LocalPersistence, root: Path, change: str
) -> None:
    await store(backend, make_events(2))
    writer = await backend.open(ONE)
    tail = root / "one" / "tail.jsonl"
    data = tail.read_bytes()
    if change == "removed":
        tail.unlink()
    elif change == "replaced":
        (root / "copy").write_bytes(data)
        (root / "copy").replace(tail)
    elif change == "cut":
        os.truncate(tail, len(data) - 10)
    elif change == "grown":
        tail.write_bytes(data + b"more")
    else:
        tail.parent.rename(root / "away")
    before = tail.read_bytes() if tail.exists() else None
    with pytest.raises(LogChanged) as changed:
        writer.append(make_events(1, start=2))
    assert changed.value.code == "LOG_CHANGED"
    assert writer.not_saved is not None
    with pytest.raises(LogChanged):
        await writer.flush()
    await writer.close()
    assert (tail.read_bytes() if tail.exists() else None) == before


async def test_a_log_that_is_changed_after_an_append_is_found_at_the_flush(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(2))
    writer = await backend.open(ONE)
    tail = root / "one" / "tail.jsonl"
    writer.append(make_events(1, start=2))
    tail.unlink()
    with pytest.raises(LogChanged, match="removed"):
        await writer.flush()
    await writer.close()
    assert not tail.exists()


@pytest.mark.parametrize("turns", [40, pytest.param(5000, marks=pytest.mark.crash)])
async def test_two_processes_that_take_turns_leave_one_contiguous_log(
    backend: LocalPersistence, root: Path, start: Start, turns: int
) -> None:
    both = [start("contend", root.parent, "one", str(turns)) for _ in range(2)]
    said = [process.communicate()[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    lengths = sorted(int(length) for one in said for length in one)
    events = await read_all(backend)
    assert [(event.seq, event.data) for event in events] == [
        (seq, {"n": seq}) for seq in range(lengths[-1])
    ]
    assert len(set(lengths)) == 2 * turns
