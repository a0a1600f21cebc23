"""Data too large for a line: where it is kept, and what a bad file costs."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import logging
import os
import shutil
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard

from heald import Row
from heald.testing import HostFactory
from heald_persistence import Damage, SessionDamaged, SessionNotSaved, blobs, disk
from heald_persistence.blobs import BLOB_OVER
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import (
    make_events,
    make_header,
    make_large,
    read_all,
    same,
    store,
)
from heald_session import Event, EventInvalid, LogOffset, NewEvent, SessionId, session_store

ONE, TWO = SessionId("one"), SessionId("two")
LARGE = BLOB_OVER + 1
LOGGER = logging.getLogger("heald_persistence")


def lines_of(root: Path, name: str = "one") -> list[dict[str, Any]]:
    """Return the events of a log as any program reads them."""
    place = root / name
    _, _, tail = (place / "tail.jsonl").read_bytes().partition(b"\n")
    sealed = b""
    if (place / "log.jsonl.zst").exists():
        with (place / "log.jsonl.zst").open("rb") as file:
            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            sealed = reader.read()
    return [json.loads(line) for line in (sealed + tail).splitlines()]


def blob_of(root: Path, event: Event, name: str = "one") -> Path:
    return root / name / "blobs" / hashlib.sha256(event.encoded).hexdigest()


async def fork(backend: LocalPersistence, cut: int) -> None:
    header = make_header("two", is_seeded=True, parent_session=ONE)
    writer = await backend.fork(ONE, LogOffset(cut), header)
    await writer.close()


async def damage_of(
    backend: LocalPersistence, **selection: Any
) -> tuple[list[int], Sequence[Damage]]:
    found: list[Damage] = []
    events = await read_all(backend, on_damage=found.append, **selection)
    return [event.seq for event in events], found


async def test_data_over_the_limit_is_in_a_file_named_by_its_hash(
    backend: LocalPersistence, root: Path
) -> None:
    small, large = make_large(BLOB_OVER), make_large(LARGE, 1)
    await store(backend, [small, large, make_large(LARGE, 2)])
    first, second, third = lines_of(root)
    digest = hashlib.sha256(large.encoded).hexdigest()
    assert first["data"] == small.data
    assert "blob" not in first
    assert second["blob"] == third["blob"] == {"sha256": digest, "size": LARGE}
    assert "data" not in second
    folder = root / "one" / "blobs"
    assert [path.name for path in folder.iterdir()] == [digest]
    assert (folder / digest).read_bytes() == bytes(large.encoded)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / digest).stat().st_mode & 0o777 == 0o600


async def test_a_session_without_large_data_has_no_blobs(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(5))
    assert not (root / "one" / "blobs").exists()


async def test_sealed_events_cite_their_data_too(root: Path) -> None:
    backend = LocalPersistence(root, 1 << 24, lambda: 1, LOGGER, seal_bytes=300)
    events = [
        make_large(LARGE, n, "abc"[n % 3]) if n % 2 else make_events(1, n)[0] for n in range(40)
    ]
    await store(backend, events)
    assert (root / "one" / "log.jsonl.zst").stat().st_size < LARGE
    assert same(await read_all(backend), events)
    assert same(await read_all(backend, types={"acme/large"}), events[1::2])
    writer = await backend.open(ONE)
    await writer.close()


async def test_a_session_store_keeps_and_forks_large_data(
    heald_host: HostFactory, heald_home: Path
) -> None:
    rows = [Row("session", "session"), Row("persistence", "persistence")]
    text = "word " * 100_000
    async with heald_host(rows=rows) as host:
        sessions = host.scope.require(session_store)
        first = [NewEvent("user/message", {"id": "m", "text": text})]
        await sessions.create(cwd=None, id=ONE, first=first)
        await sessions.fork(ONE, id=TWO)
    (mine,) = (heald_home / "sessions" / "one" / "blobs").iterdir()
    (inherited,) = (heald_home / "sessions" / "two" / "blobs").iterdir()
    assert mine.samefile(inherited)
    async with heald_host(rows=rows) as host:
        session = await host.scope.require(session_store).resume(TWO)
        assert [event.data["text"] async for event in session.read()] == [text]


# Forks


async def test_a_fork_has_the_same_files_and_outlives_its_source(
    backend: LocalPersistence, root: Path
) -> None:
    events = [make_large(LARGE), *make_events(1, start=1), make_large(LARGE, 2, "y")]
    await store(backend, events)
    await fork(backend, 2)
    assert blob_of(root, events[0]).samefile(blob_of(root, events[0], "two"))
    assert not blob_of(root, events[2], "two").exists()
    await backend.delete(ONE)
    assert same(await read_all(backend, "two"), events[:2])
    assert list(await backend.verify(TWO)) == []


async def test_where_files_cannot_be_linked_a_fork_has_copies(
    backend: LocalPersistence, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_old: Path, _new: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(disk, "link", refuse)
    event = make_large(LARGE)
    await store(backend, [event])
    await fork(backend, 1)
    assert not blob_of(root, event).samefile(blob_of(root, event, "two"))
    assert same(await read_all(backend, "two"), [event])


async def test_a_fork_does_not_take_over_what_has_rotted(
    backend: LocalPersistence, root: Path
) -> None:
    event = make_large(LARGE)
    await store(backend, [event])
    header = make_header("two", is_seeded=True, parent_session=ONE)
    writer = await backend.create(header, LogOffset(1))
    writer.append(await read_all(backend))
    flip(blob_of(root, event))
    await writer.close()
    assert same(await read_all(backend, "two"), [event])
    with pytest.raises(SessionDamaged):
        await read_all(backend)


# Damage


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b" ")


def replace_with_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_with_link(path: Path) -> None:
    copy = path.with_name("copy")
    path.rename(copy)
    path.symlink_to(copy)


def replace_with_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


RUINS = [Path.unlink, flip, cut, lengthen, replace_with_directory, replace_with_link]


@pytest.mark.parametrize("ruin", [*RUINS, replace_with_pipe], ids=lambda f: f.__name__)
async def test_a_bad_file_costs_its_event_and_no_other(
    backend: LocalPersistence, root: Path, ruin: Callable[[Path], None]
) -> None:
    bad = make_large(LARGE, 2)
    events = [*make_events(2), bad, make_large(LARGE, 3, "y"), *make_events(1, start=4)]
    await store(backend, events)
    ruin(blob_of(root, bad))

    seqs, found = await damage_of(backend)
    assert seqs == [0, 1, 3, 4]
    (damage,) = found
    assert (damage.kind, damage.first, damage.count) == ("blob", 2, 1)
    assert damage.types == frozenset({"acme/large"})
    assert damage.file == f"blobs/{blob_of(root, bad).name}"
    assert damage.reason
    with pytest.raises(SessionDamaged, match="event 2"):
        await read_all(backend)
    assert list(await backend.verify(ONE)) == [damage]

    assert await damage_of(backend, types={"acme/note"}) == ([0, 1, 4], [])
    assert await damage_of(backend, start=LogOffset(3)) == ([3, 4], [])
    assert await damage_of(backend, stop=LogOffset(2)) == ([0, 1], [])


async def test_damage_is_told_in_its_place(backend: LocalPersistence, root: Path) -> None:
    bad = make_large(LARGE, 2)
    await store(backend, [*make_events(2), bad, *make_events(2, start=3)])
    blob_of(root, bad).unlink()
    told: list[int] = []
    async with await backend.read(ONE) as log:
        async for batch in log.batches(on_damage=lambda damage: told.append(-damage.first)):
            told.extend(event.seq for event in batch)
    assert told == [0, 1, -2, 3, 4]


async def test_a_bad_file_is_put_right_when_the_same_data_is_stored_again(
    backend: LocalPersistence, root: Path
) -> None:
    event = make_large(LARGE)
    await store(backend, [event])
    flip(blob_of(root, event))
    writer = await backend.open(ONE)
    writer.append([make_large(LARGE, 1)])
    await writer.close()
    assert [e.data for e in await read_all(backend)] == [event.data] * 2


async def test_a_line_cannot_name_a_file_elsewhere(backend: LocalPersistence, root: Path) -> None:
    event = make_large(LARGE)
    await store(backend, [event])
    outside = root / "one" / "secret"
    outside.write_bytes(bytes(event.encoded))
    tail = root / "one" / "tail.jsonl"
    head, line = tail.read_bytes().splitlines(keepends=True)
    name = blob_of(root, event).name.encode()
    body = line.replace(name, b"../secret")[: -len(b',"sum":"00000000"}\n')]
    tail.write_bytes(head + summed(body))
    with pytest.raises(SessionDamaged):
        await read_all(backend)


async def test_a_line_cannot_ask_for_any_amount_of_memory(
    backend: LocalPersistence, root: Path
) -> None:
    event = make_large(LARGE)
    await store(backend, [event])
    tail = root / "one" / "tail.jsonl"
    head, line = tail.read_bytes().splitlines(keepends=True)
    size = 1 << 40
    body = line.replace(b'"size":%d' % LARGE, b'"size":%d' % size)[: -len(b',"sum":"00000000"}\n')]
    tail.write_bytes(head + summed(body))
    os.truncate(blob_of(root, event), size)  # it has holes, so it takes no room
    _, (damage,) = await damage_of(backend)
    assert (damage.kind, damage.first) == ("blob", 0)
    assert "are the most" in damage.reason


async def test_data_that_no_reader_would_take_is_refused_before_it_is_queued(
    backend: LocalPersistence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "BLOB_LIMIT", LARGE)
    writer = await backend.create(make_header(), LogOffset(0))
    with pytest.raises(EventInvalid, match="are the most"):
        writer.append([*make_events(1), make_large(LARGE + 1, 1)])
    writer.append([make_large(LARGE)])
    await writer.close()
    assert same(await read_all(backend), [make_large(LARGE)])


def summed(body: bytes) -> bytes:
    return b'%b,"sum":"%08x"}\n' % (body, zlib.crc32(body))


# Order and faults

CALLS = (
    "create",
    "append_to",
    "write",
    "sync",
    "rename",
    "link",
    "sync_directory",
    "make_directory",
)


def calls_of(monkeypatch: pytest.MonkeyPatch, at: Callable[[str, tuple[Any, ...]], None]) -> None:
    """Have `at` told of every call of the disk before it is made."""

    def wrap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            at(name, args)
            return real(*args)

        return call

    for name in CALLS:
        monkeypatch.setattr(disk, name, wrap(name, getattr(disk, name)))


@pytest.mark.parametrize("start", [0, 1], ids=["new session", "stored session"])
async def test_a_file_and_its_name_last_before_its_line_is_written(
    make_backend: Callable[..., LocalPersistence], monkeypatch: pytest.MonkeyPatch, start: int
) -> None:
    backend = make_backend(1 << 24)
    made: list[str] = []
    if start:
        await store(backend, make_events(1))

    def note(name: str, args: tuple[Any, ...]) -> None:
        what = str(args[0]) if isinstance(args[0], Path) else ""
        if name == "write":
            what = "line" if b'"blob":' in bytes(args[1])[:4096] else ""
        elif name == "rename" and "/blobs/" in str(args[1]):
            what = "blob"
        made.append(f"{name} {what.rpartition('/')[2]}".strip())

    writer = await (backend.open(ONE) if start else backend.create(make_header(), LogOffset(0)))
    calls_of(monkeypatch, note)
    writer.append([make_large(LARGE, start)])
    await writer.close()
    named, line = made.index("rename blob"), made.index("write line")
    assert "sync" in made[:named]
    assert "sync_directory blobs" in made[named:line]
    if start:
        assert "sync_directory one" in made[named:line]
    assert same((await read_all(backend))[start:], [make_large(LARGE, start)])


async def test_no_line_cites_what_is_not_there_at_whatever_call_the_writer_dies(
    root: Path, make_backend: Callable[..., LocalPersistence], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of the files is taken before every call: each is what a kill there would leave."""
    backend = make_backend(1 << 24)
    await store(backend, make_events(1))
    copies: list[Path] = []

    def copy(_name: str, _args: tuple[Any, ...]) -> None:
        copies.append(root.parent / f"copy-{len(copies)}")
        shutil.copytree(root, copies[-1])

    events = [*make_events(1), make_large(LARGE, 1), make_large(LARGE, 2, "y")]
    writer = await backend.open(ONE)
    with monkeypatch.context() as patch:
        calls_of(patch, copy)
        writer.append(events[1:])
        await writer.flush()
        await writer.close()
    assert len(copies) > 8
    lengths = []
    for place in copies:
        left = LocalPersistence(place, 1 << 24, lambda: 1, LOGGER)
        found = await read_all(left)
        assert same(found, events[: len(found)])
        assert list(await left.verify(ONE)) == []
        again = await left.open(ONE)
        again.append(events[again.flushed :])
        await again.close()
        assert same(await read_all(left), events)
        assert not list(place.glob("one/blobs/.*"))
        lengths.append(len(found))
    assert lengths[0] == 1
    assert lengths == sorted(lengths)


@pytest.mark.parametrize("start", [0, 1], ids=["new session", "stored session"])
async def test_whatever_call_fails_the_events_stay_queued_and_are_saved_later(
    root: Path,
    make_backend: Callable[..., LocalPersistence],
    monkeypatch: pytest.MonkeyPatch,
    start: int,
) -> None:
    fail_at = 0

    def fail(_name: str, _args: tuple[Any, ...]) -> None:
        nonlocal fail_at
        fail_at -= 1
        if fail_at == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    calls_of(monkeypatch, fail)
    backend = make_backend(1 << 24)
    events = [*make_events(1), make_large(LARGE, 1), make_large(LARGE, 2, "y")]
    for step in itertools.count(1):
        name = f"s{step}"
        if start:
            await store(backend, events[:1], name)
        writer = await (
            backend.open(SessionId(name))
            if start
            else backend.create(make_header(name), LogOffset(0))
        )
        fail_at = step
        writer.append(events[start:])
        try:
            await writer.flush()
        except SessionNotSaved:
            assert writer.flushed == start
            await writer.flush()
        assert writer.flushed == 3
        done = fail_at > 0
        fail_at = 0
        await writer.close()
        assert same(await read_all(backend, name), events)
        assert not list(root.glob(f"{name}/blobs/.*"))
        if done:
            assert step > 8
            break


async def test_a_name_that_may_not_last_is_not_trusted(
    make_backend: Callable[..., LocalPersistence], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = make_backend(1 << 24)
    await store(backend, make_events(1))
    named: list[Path] = []
    failed = False

    def fail_once(name: str, args: tuple[Any, ...]) -> None:
        nonlocal failed
        if name == "rename" and args[1].parent.name == "blobs":
            named.append(args[1])
        if name == "sync_directory" and args[0].name == "blobs" and not failed:
            failed = True
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    writer = await backend.open(ONE)
    calls_of(monkeypatch, fail_once)
    writer.append([make_large(LARGE, 1)])
    await writer.flush()
    await writer.close()
    assert len(named) == 2
    assert list(await backend.verify(ONE)) == []
