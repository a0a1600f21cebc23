"""Surveys of a directory that others change too, and the syncing of what was read there."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import pytest

from heald_persistence import StorageUnavailable, Survey, disk
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import make_events, make_large, store
from heald_persistence.testing.surveys import remembered
from heald_session import SessionId

ONE = SessionId("one")


@pytest.fixture
def backend(tmp_path: Path) -> LocalPersistence:
    return LocalPersistence(
        tmp_path / "sessions", 1_000_000, lambda: 1, logging.getLogger("test"), seal_bytes=65_536
    )


async def test_a_header_that_somebody_changed_is_told(backend: LocalPersistence) -> None:
    await store(backend, make_events(1), cwd="/aa")
    facts = backend.root / "one" / "session.json"
    known = await remembered(backend)
    before = facts.stat()
    facts.write_bytes(facts.read_bytes().replace(b"/aa", b"/bb"))
    os.utime(facts, ns=(before.st_atime_ns, before.st_mtime_ns))
    (changed,) = (await backend.survey(known)).changed
    assert changed.header is not None
    assert changed.header.cwd == "/bb"


async def test_a_header_is_read_again_until_another_change_would_be_seen(
    backend: LocalPersistence,
) -> None:
    """A file that was changed just now may change once more without another time."""
    await store(backend, make_events(1), cwd="/aa")
    facts = backend.root / "one" / "session.json"
    facts.write_bytes(facts.read_bytes().replace(b"/aa", b"/bb"))
    (told,) = (await backend.survey({})).changed
    assert told.stamp is None


async def test_what_is_broken_is_looked_at_every_time_and_goes_when_it_is_gone(
    backend: LocalPersistence,
) -> None:
    await store(backend, make_events(1))
    (backend.root / "empty").mkdir()
    (backend.root / "file").write_text("x")
    (backend.root / "~odd").mkdir()
    (backend.root / ".hidden").mkdir()
    known = {item.name: item.stamp or "" for item in await backend.list()}
    assert {name for name, stamp in known.items() if not stamp} >= {"empty", "file", "~odd"}
    known = {**known, "one": (await remembered_of(backend, "one"))}
    survey = await backend.survey(known)
    assert {item.name for item in survey.changed} == {"empty", "file", "~odd"}
    assert all(item.problem for item in survey.changed)
    (backend.root / "empty").rmdir()
    (backend.root / "~odd").rmdir()
    survey = await backend.survey(known)
    assert [item.name for item in survey.changed] == ["file"]
    assert survey.gone == {"empty", "~odd"}


async def remembered_of(backend: LocalPersistence, name: str) -> str:
    while True:
        found = {item.name: item.stamp for item in await backend.list()}
        if stamp := found[name]:
            return stamp


async def test_a_session_moved_away_with_a_link_in_its_place_is_told(
    backend: LocalPersistence, tmp_path: Path
) -> None:
    await store(backend, make_events(1))
    known = await remembered(backend)
    place = backend.root / "one"
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    (changed,) = (await backend.survey(known)).changed
    assert changed.problem is not None


async def test_a_root_that_is_not_there_has_lost_everything(backend: LocalPersistence) -> None:
    assert await backend.survey({"one": "x"}) == Survey((), frozenset({"one"}))


async def test_settling_syncs_the_files_that_were_read_and_their_names(
    backend: LocalPersistence, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store(backend, [make_large(70_000), *make_events(9, start=1)])
    place = backend.root / "one"
    async with await backend.read(ONE) as log:
        files: list[int] = []
        directories: list[Path] = []
        monkeypatch.setattr(disk, "sync", lambda fd: files.append(os.fstat(fd).st_ino))
        monkeypatch.setattr(disk, "sync_directory", directories.append)
        await log.settle()
        wanted = {(place / name).stat().st_ino for name in ("tail.jsonl", "log.jsonl.zst")}
        assert wanted <= set(files)
        assert directories == [place, backend.root]


async def test_settling_says_when_the_disk_fails(
    backend: LocalPersistence, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store(backend, make_events(1))

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    async with await backend.read(ONE) as log:
        monkeypatch.setattr(disk, "sync", fail)
        with pytest.raises(StorageUnavailable, match="Input/output"):
            await log.settle()


async def test_what_is_written_here_need_only_be_there(backend: LocalPersistence) -> None:
    """Nobody else can change a session that has a writer here; looking at each would cost."""
    await store(backend, make_events(1), cwd="/aa")
    facts = backend.root / "one" / "session.json"
    known = await remembered(backend)
    writer = await backend.open(ONE)
    facts.write_bytes(facts.read_bytes().replace(b"/aa", b"/bb"))
    assert await backend.survey(known) == Survey((), frozenset())
    await writer.close()
    (changed,) = (await backend.survey(known)).changed
    assert changed.name == "one"
    writer = await backend.open(ONE)
    shutil.rmtree(backend.root / "one")
    assert (await backend.survey(known)).gone == {"one"}
    await writer.discard()
