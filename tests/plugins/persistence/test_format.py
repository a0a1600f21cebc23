"""The bytes on disk, read by code that knows only what the format says."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import json
import stat
import zlib
from pathlib import Path
from typing import Any

import pytest

from heald_persistence import Damage, FormatTooNew, SessionDamaged
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import make_events, make_header, read_all, store
from heald_session import LogOffset, SessionId


def checked(line: bytes) -> dict[str, Any]:
    body, _, ending = line.rpartition(b',"sum":"')
    assert ending == b'%08x"}' % zlib.crc32(body)
    parsed: dict[str, Any] = json.loads(line)
    return parsed


async def test_a_tail_is_lines_of_json_with_checksums_that_anybody_can_verify(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(3))
    data = (root / "one" / "tail.jsonl").read_bytes()
    assert data.endswith(b"\n")
    header, *events = [checked(line) for line in data[:-1].split(b"\n")]
    assert {**header, "sum": ""} == {"log_id": "log of one", "base": 0, "sealed": 0, "sum": ""}
    assert [event["seq"] for event in events] == [0, 1, 2]
    assert events[2]["data"] == {"n": 2, "text": "é\né\n"}
    assert list(events[0]) == ["seq", "type", "time", "data", "sum"]


async def test_the_header_is_written_once_beside_the_log(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(1), cwd="/a")
    path = root / "one" / "session.json"
    before = path.stat()
    writer = await backend.open(SessionId("one"))
    writer.append(make_events(1, start=1))
    await writer.close()
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert json.loads(path.read_bytes()) == {
        "header": {
            "version": 1,
            "id": "one",
            "log_id": "log of one",
            "created_at": 1_700_000_000_000,
            "cwd": "/a",
        },
        "inherited_event_count": 0,
    }


async def test_directories_and_files_are_the_persons_own(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(1))
    with (root / "one" / "tail.jsonl").open("ab") as tail:
        tail.write(b"torn")
    await (await backend.open(SessionId("one"))).close()
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [root, *root.rglob("*")]}
    assert len(modes) == 7
    assert {path: 0o700 if path.is_dir() else 0o600 for path in modes} == modes


async def test_opening_and_leaving_changes_nothing_but_the_locks_text(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(3))

    def state() -> dict[str, tuple[bytes, int]]:
        files = [path for path in root.rglob("*") if path.is_file() and path.name != "lock"]
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    before = state()
    await (await backend.open(SessionId("one"))).close()
    await backend.list()
    async with await backend.read(SessionId("one")):
        pass
    assert state() == before
    assert sorted(path.name for path in (root / "one").iterdir()) == [
        "lock",
        "session.json",
        "tail.jsonl",
    ]


async def test_a_newer_format_is_listed_as_such_and_neither_read_nor_written(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(1))
    path = root / "one" / "session.json"
    path.write_text('{"header": {"version": 2, "soul": []}}')
    before = (root / "one" / "tail.jsonl").read_bytes()
    (stored,) = await backend.list()
    assert stored.header is None
    assert stored.problem is not None
    assert "newer Heald" in stored.problem
    for use in (backend.read, backend.open):
        with pytest.raises(FormatTooNew):
            await use(SessionId("one"))
    assert (root / "one" / "tail.jsonl").read_bytes() == before


async def test_the_tail_of_another_log_is_damage(backend: LocalPersistence, root: Path) -> None:
    await store(backend, make_events(1), "one")
    await store(backend, make_events(1), "two")
    (root / "two" / "tail.jsonl").replace(root / "one" / "tail.jsonl")
    for use in (backend.open(SessionId("one")), read_all(backend)):
        with pytest.raises(SessionDamaged, match="another log"):
            await use


async def test_an_event_of_a_shape_that_is_not_known_is_never_taken_for_a_torn_write(
    backend: LocalPersistence, root: Path
) -> None:
    await store(backend, make_events(1))
    body = b'{"seq":1,"type":"a","time":1,"data":{},"surface":{"op":"mirror"}'
    with (root / "one" / "tail.jsonl").open("ab") as tail:
        tail.write(b'%b,"sum":"%08x"}\n' % (body, zlib.crc32(body)))
    for use in (backend.open(SessionId("one")), read_all(backend)):
        with pytest.raises(SessionDamaged):
            await use


async def test_lost_inherited_events_are_damage(backend: LocalPersistence, root: Path) -> None:
    writer = await backend.create(make_header(is_seeded=True), LogOffset(3))
    writer.append(make_events(3))
    await writer.close()
    path = root / "one" / "tail.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SessionDamaged, match="2 of 3"):
        await backend.open(SessionId("one"))
    with pytest.raises(SessionDamaged, match="event 2"):
        await read_all(backend)
    told: list[Damage] = []
    assert len(await read_all(backend, on_damage=told.append)) == 2
    assert [(damage.kind, damage.first, damage.count) for damage in told] == [("missing", 2, 1)]
