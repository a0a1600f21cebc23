"""Forks of long sessions: the source's own frames, and nothing of it that is damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from heald_persistence import SessionDamaged, SessionNotSaved, disk
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import make_events, make_header, make_large, read_all, same
from heald_session import LogOffset, SessionId

ONE, TWO = SessionId("one"), SessionId("two")
CHILD = make_header("two", is_seeded=True, parent_session=ONE)


@pytest.fixture
async def small(make_backend: Callable[..., LocalPersistence]) -> LocalPersistence:
    """A backend with a session of several frames and a tail."""
    backend = make_backend(seal_bytes=4000)
    writer = await backend.create(make_header(), LogOffset(0))
    for start in range(0, 130, 10):
        writer.append(make_events(10, start=start))
        await writer.flush()
    await writer.discard()
    return backend


async def test_a_fork_at_any_cut_begins_with_the_frames_of_its_source(
    small: LocalPersistence, root: Path
) -> None:
    frames = (root / "one" / "log.jsonl.zst").read_bytes()
    taken = set()
    for cut in range(1, 131):
        child = make_header(f"c{cut}", is_seeded=True, parent_session=ONE)
        writer = await small.fork(ONE, LogOffset(cut), child)
        writer.append(make_events(2, start=cut, type="acme/own"))
        await writer.flush()
        assert writer.flushed == cut + 2
        await writer.close()
        found = await read_all(small, child.id)
        assert same(found, [*make_events(cut), *make_events(2, start=cut, type="acme/own")])
        assert list(await small.verify(child.id)) == []
        log = root / child.id / "log.jsonl.zst"
        shared = log.read_bytes() if log.exists() else b""
        if frames.startswith(shared):
            taken.add(len(shared))
    assert len(taken) > 3


async def test_a_fork_that_nothing_was_added_to_is_stored_when_it_closes(
    small: LocalPersistence,
) -> None:
    writer = await small.fork(ONE, LogOffset(100), CHILD)
    assert [stored.name for stored in await small.list()] == ["one"]
    await writer.close()
    assert same(await read_all(small, "two"), make_events(100))


async def test_damage_is_not_inherited(small: LocalPersistence, root: Path) -> None:
    log = root / "one" / "log.jsonl.zst"
    bad = bytearray(log.read_bytes())
    bad[-30] ^= 1
    log.write_bytes(bad)
    with pytest.raises(SessionDamaged):
        await small.fork(ONE, LogOffset(130), CHILD)
    writer = await small.fork(ONE, LogOffset(20), CHILD)
    await writer.close()
    assert same(await read_all(small, "two"), make_events(20))


async def test_a_fork_is_stored_whole_after_a_disk_that_was_full(
    small: LocalPersistence, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = await small.fork(ONE, LogOffset(130), CHILD)
    writer.append(make_events(1, start=130))
    real = disk.write

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "write", fail)
    with pytest.raises(SessionNotSaved):
        await writer.flush()
    assert not (root / "two").exists()
    await small.delete(ONE)
    monkeypatch.setattr(disk, "write", real)
    await writer.close()
    assert same(await read_all(small, "two"), make_events(131))


async def test_a_large_payload_in_a_frame_is_inherited(small: LocalPersistence, root: Path) -> None:
    writer = await small.open(ONE)
    large = make_large(300_000, 130)
    writer.append([large, *make_events(40, start=131)])
    await writer.close()
    child = await small.fork(ONE, LogOffset(171), CHILD)
    await small.delete(ONE)
    await child.close()
    assert len(list((root / "two" / "blobs").iterdir())) == 1
    found = await read_all(small, "two")
    assert same([found[130]], [large])
    assert list(await small.verify(TWO)) == []
