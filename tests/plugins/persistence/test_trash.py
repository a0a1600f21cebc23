"""Where deleted sessions are on the disk, and who stands in the way of deleting one."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heald import Host, Row
from heald.testing import HostFactory
from heald_persistence import (
    LogChanged,
    SessionBusy,
    SessionDamaged,
    StorageUnavailable,
    disk,
    session_persistence,
    waiting,
)
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import make_events, make_header, make_large, read_all, same, store
from heald_persistence.trash import Trash
from heald_projection_cache import projection_cache
from heald_query import session_query
from heald_session import (
    APPEND,
    LogOffset,
    NewEvent,
    SessionId,
    SessionIdTaken,
    SessionNotFound,
    session_store,
)

ONE = SessionId("one")
NOW = 1_700_000_000_000
ROWS = ("session", "persistence", "projection", "projection-cache", "query")


@pytest.fixture
def trash(backend: LocalPersistence) -> Path:
    return backend.trash.root


def files_of(place: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and path.name != "lock"
    }


async def test_a_deleted_session_is_one_directory_with_every_file_it_had(
    backend: LocalPersistence, root: Path, trash: Path
) -> None:
    await store(backend, [*make_events(3), make_large(300_000, 3)])
    files = files_of(root / "one")
    await backend.delete(ONE)
    (entry,) = trash.iterdir()
    name, time, nonce = entry.name.split(".")
    assert (name, time, len(nonce)) == ("one", str(NOW), 8)
    assert files_of(entry) == files
    assert trash.stat().st_mode & 0o777 == 0o700
    await backend.restore(ONE)
    assert files_of(root / "one") == files
    assert list(trash.iterdir()) == []


async def test_later_entries_have_later_times_though_the_clock_stands_still(
    backend: LocalPersistence, trash: Path
) -> None:
    for name in ("one", "two", "one"):
        await store(backend, make_events(1), name)
        await backend.delete(SessionId(name))
    times = sorted(
        (entry.name.split(".")[1], entry.name.split(".")[0]) for entry in trash.iterdir()
    )
    assert times == [(str(NOW), "one"), (str(NOW + 1), "two"), (str(NOW + 2), "one")]


async def test_what_is_not_of_the_trash_is_not_listed_and_left_in_peace(
    backend: LocalPersistence, trash: Path
) -> None:
    await store(backend, make_events(1))
    await backend.delete(ONE)
    (trash / "one.txt").write_text("mine")
    (trash / "one.9999999999999.nothex00").mkdir()
    (trash / "two.1700000000000.01234567").write_text("a file")
    (trash / "three.1700000000000.01234567").symlink_to(trash)
    assert [stored.name for stored in await backend.trashed()] == ["one"]
    await backend.restore(ONE)
    assert len(list(trash.iterdir())) == 4


async def test_a_broken_session_can_be_deleted_and_restored(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(1))
    (root / "one" / "session.json").write_text("{")
    with pytest.raises(SessionDamaged):
        await backend.open(ONE)
    await backend.delete(ONE)
    assert list(await backend.list()) == []
    (stored,) = await backend.trashed()
    assert stored.name == "one"
    assert stored.problem is not None
    await backend.restore(ONE)
    assert (root / "one" / "session.json").read_text() == "{"


@pytest.mark.parametrize("kind", ["file", "link"])
async def test_what_is_not_a_sessions_directory_is_not_deleted(
    backend: LocalPersistence, root: Path, kind: str
) -> None:
    root.mkdir()
    elsewhere = root.parent / "elsewhere"
    elsewhere.mkdir()
    if kind == "file":
        (root / "one").write_text("mine")
    else:
        (root / "one").symlink_to(elsewhere)
    with pytest.raises(SessionNotFound):
        await backend.delete(ONE)
    assert [path.name for path in root.iterdir()] == ["one"]
    assert list(elsewhere.iterdir()) == []


async def test_a_session_that_another_process_writes_is_not_deleted(
    backend: LocalPersistence,
    root: Path,
    start: Callable[..., subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "_BETWEEN_TRIES", 0)
    await store(backend, make_events(2))
    process = start("hold", root.parent, "one")
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(SessionBusy, match=f"process {process.pid} on "):
        await backend.delete(ONE)
    assert same(await read_all(backend), make_events(2))
    process.communicate("")
    await backend.delete(ONE)
    assert list(await backend.list()) == []


async def test_a_writer_that_is_just_leaving_is_waited_for(backend: LocalPersistence) -> None:
    await store(backend, make_events(1))
    writer = await backend.open(ONE)
    deleting = asyncio.create_task(backend.delete(ONE))
    await asyncio.sleep(0)
    await writer.close()
    await deleting
    assert list(await backend.list()) == []


async def come_and_go(backend: LocalPersistence, ended: asyncio.Event) -> None:
    """Make the session and delete it, with as many events as the number of its log says."""
    for number in range(15):
        await store(backend, make_events(number % 3 + 1), log_id=str(number))
        while await backend.list():
            with contextlib.suppress(SessionBusy):
                await backend.delete(ONE)
    ended.set()


async def read_on(backend: LocalPersistence, ended: asyncio.Event) -> None:
    while not ended.is_set():
        with contextlib.suppress(SessionNotFound):
            async with await backend.read(ONE) as log:
                found = [event async for batch in log.batches() for event in batch]
                assert len(found) == log.end == int(log.header.log_id) % 3 + 1
        await asyncio.sleep(0)


async def open_on(backend: LocalPersistence, ended: asyncio.Event) -> None:
    while not ended.is_set():
        with contextlib.suppress(SessionNotFound, SessionBusy):
            writer = await backend.open(ONE)
            assert 1 <= writer.flushed <= 3
            await writer.close()
        await asyncio.sleep(0)


async def test_whoever_opens_a_session_while_it_goes_finds_it_whole_or_not_at_all(
    backend: LocalPersistence,
    make_backend: Callable[..., LocalPersistence],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "_BETWEEN_TRIES", 0)
    other, ended = make_backend(), asyncio.Event()
    await asyncio.gather(
        come_and_go(backend, ended),
        read_on(other, ended),
        read_on(other, ended),
        open_on(other, ended),
    )
    assert len(await backend.trashed()) == 15


async def test_a_writer_whose_session_was_moved_by_hand_writes_nowhere(
    backend: LocalPersistence, root: Path, trash: Path
) -> None:
    await store(backend, make_events(1))
    writer = await backend.open(ONE)
    trash.mkdir()
    (root / "one").rename(trash / f"one.{NOW}.01234567")
    with pytest.raises(LogChanged):
        writer.append(make_events(1, start=1))
    await writer.close()
    await backend.restore(ONE)
    assert same(await read_all(backend), make_events(1))


async def test_a_fork_is_not_deleted_with_its_source(backend: LocalPersistence) -> None:
    events = [*make_events(2), make_large(300_000, 2)]
    await store(backend, events)
    header = make_header("two", is_seeded=True, parent_session=ONE)
    await (await backend.fork(ONE, LogOffset(3), header)).close()
    await backend.delete(ONE)
    shutil.rmtree(backend.trash.root)
    assert same(await read_all(backend, "two"), events)


async def test_an_empty_directory_in_the_place_is_not_taken(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(1))
    await backend.delete(ONE)
    (root / "one").mkdir()
    with pytest.raises(SessionIdTaken):
        await backend.restore(ONE)
    (root / "one").rmdir()
    await backend.restore(ONE)


async def test_a_session_is_restored_though_the_root_is_gone(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(1))
    backend.trash = Trash(root.parent / "trash")
    await backend.delete(ONE)
    root.rmdir()
    await backend.restore(ONE)
    assert len(await read_all(backend)) == 1


@pytest.mark.parametrize("call", ["rename", "sync_directory", "make_root"])
async def test_a_disk_that_fails_leaves_the_session_where_it_was_or_where_it_goes(
    backend: LocalPersistence, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    await store(backend, make_events(2))
    with monkeypatch.context() as patch:
        patch.setattr(disk, call, fail)
        with pytest.raises(StorageUnavailable):
            await backend.delete(ONE)
    stored, trashed = await backend.list(), await backend.trashed()
    assert [found.name for found in (*stored, *trashed)] == ["one"]
    if trashed:
        await backend.restore(ONE)
    await (await backend.open(ONE)).close()
    assert same(await read_all(backend), make_events(2))


async def test_a_trash_that_cannot_be_read_is_said_so(
    backend: LocalPersistence, trash: Path
) -> None:
    trash.parent.mkdir()
    trash.write_text("")
    with pytest.raises(StorageUnavailable):
        await backend.trashed()
    with pytest.raises(StorageUnavailable):
        await backend.restore(ONE)
    await store(backend, make_events(1))
    with pytest.raises(StorageUnavailable):
        await backend.delete(ONE)
    assert len(await read_all(backend)) == 1


@pytest.mark.parametrize("root", [None, "elsewhere"])
async def test_the_trash_is_under_the_home_or_with_a_root_of_its_own(
    heald_host: HostFactory, heald_home: Path, root: str | None
) -> None:
    config = {} if root is None else {"root": root}
    async with heald_host(
        rows=[Row("session", "session"), Row("persistence", "persistence", config)]
    ) as host:
        backend = host.scope.require(session_persistence)
        await store(backend, make_events(1))
        await backend.delete(ONE)
    place = heald_home / ("trash" if root is None else "elsewhere/.trash")
    assert [path.name.split(".")[0] for path in place.iterdir()] == ["one"]


# What is derived from a session that was deleted


async def make(host: Host, text: str, turns: int) -> None:
    sessions = host.scope.require(session_store)
    session = await sessions.create(cwd=None, id=ONE, first=[NewEvent("turn/start", {"turn": 1})])
    session.append("user/message", {"id": "m", "text": text}, surface=APPEND)
    for turn in range(1, turns):
        session.append("turn/end", {"turn": turn, "outcome": "completed"})
        session.append("turn/start", {"turn": turn + 1})
    session.append("turn/end", {"turn": turns, "outcome": "completed"})
    await sessions.dispose(session)


async def title_of(host: Host) -> Any:
    async with host.scope.require(session_query).observe_session(ONE, ["title"]) as observed:
        return observed.projections.values["title"]


async def cached_title(host: Host) -> Any:
    (record,) = await host.scope.require(session_query).list_sessions(keys=["title"])
    assert record.header is not None
    found = await host.scope.require(projection_cache).cached_snapshot(
        record.header, LogOffset(0), ["title"]
    )
    listed = None if record.projections is None else record.projections.values.get("title")
    assert listed == (None if found is None else found.values.get("title"))
    return listed


@pytest.mark.parametrize("turns", [1, 5], ids=["as long", "longer"])
async def test_a_session_made_anew_is_never_shown_what_was_derived_from_the_last(
    heald_host: HostFactory, turns: int
) -> None:
    async with heald_host(rows=[Row(name, name) for name in ROWS]) as host:
        backend = host.scope.require(session_persistence)
        await make(host, "The first", turns)
        first = await cached_title(host)
        assert first == await title_of(host)
        assert first is not None
        await backend.delete(ONE)
        with pytest.raises(SessionNotFound):
            await title_of(host)
        without = [Row(name, name) for name in ROWS if name != "projection-cache"]

    # Nobody writes checkpoints of the second, so nothing of its own hides those of the first.
    async with heald_host(rows=without) as host:
        await make(host, "The second", 1)
    async with heald_host(rows=[Row(name, name) for name in ROWS]) as host:
        assert await cached_title(host) is None
        assert await title_of(host) != first
        resumed = await host.scope.require(session_store).resume(ONE)
        await host.scope.require(session_store).dispose(resumed)
        assert await title_of(host) != first


async def test_a_restored_session_is_what_it_was_to_everyone_who_derives_from_it(
    heald_host: HostFactory, heald_home: Path
) -> None:
    async with heald_host(rows=[Row(name, name) for name in ROWS]) as host:
        backend = host.scope.require(session_persistence)
        await make(host, "The first", 2)
        first = await title_of(host)
        await backend.delete(ONE)
        await make(host, "The second", 1)
        second = await title_of(host)
        assert second != first
        await backend.delete(ONE)
        await backend.restore(ONE)
        assert await title_of(host) == second
        (heald_home / "sessions" / "one").rename(heald_home / "aside")
        await backend.restore(ONE)
        assert await title_of(host) == first
