"""`heald sessions delete`, `restore`, `verify` and `salvage`, as people and programs run them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heald import Row
from heald.testing import CommandRunner, HostFactory
from heald_persistence import session_persistence
from heald_session import SessionId, session_store

ROWS = [Row(id=name, plugin=name) for name in ("session", "persistence", "projection")]


@pytest.fixture
async def home(heald_host: HostFactory, heald_home: Path) -> Path:
    """Return a home with two sessions of three events each."""
    async with heald_host(rows=ROWS) as host:
        for name in ("aa-first", "ab-second"):
            session = await host.scope.require(session_store).create(cwd="/", id=SessionId(name))
            session.append("turn/start", {"turn": 1})
            session.append("inbox/message", {"id": "m", "text": "the middle"})
            session.append("turn/end", {"turn": 1, "outcome": "completed"})
            await session.flush()
    return heald_home


def damage(home: Path, name: str) -> int:
    """Damage the second event of a session's log; return where it begins."""
    tail = home / "sessions" / name / "tail.jsonl"
    data = tail.read_bytes()
    tail.write_bytes(data.replace(b"the middle", b"the_middle"))
    return data.index(b'{"seq":1')


def test_a_deleted_session_is_in_the_trash_until_it_is_restored(
    home: Path, heald_cli: CommandRunner
) -> None:
    before = (home / "sessions" / "aa-first" / "tail.jsonl").read_bytes()
    done = heald_cli("sessions", "delete", "aa")
    assert done.stdout == (
        "aa-first is in the trash; `heald sessions restore aa-first` brings it back\n"
    )
    assert sorted(path.name for path in (home / "sessions").iterdir()) == ["ab-second"]
    listed = json.loads(heald_cli("sessions", "restore", "--json").stdout)
    assert [(one["id"], one["cwd"], one["problem"]) for one in listed] == [("aa-first", "/", None)]
    assert heald_cli("sessions", "restore").stdout.splitlines()[1].split()[:2] == ["aa-first", "/"]
    assert heald_cli("sessions", "restore", "aa").stdout == "aa-first is back\n"
    assert (home / "sessions" / "aa-first" / "tail.jsonl").read_bytes() == before
    assert heald_cli("sessions", "restore").stdout == "The trash is empty.\n"


async def test_a_session_that_is_being_written_is_not_deleted(
    home: Path, heald_cli: CommandRunner, heald_host: HostFactory
) -> None:
    async with heald_host(rows=ROWS) as host:
        writer = await host.scope.require(session_persistence).open(SessionId("aa-first"))
        assert "SESSION_BUSY" in heald_cli("sessions", "delete", "aa", code=1).stderr
        await writer.close()
    assert (home / "sessions" / "aa-first" / "tail.jsonl").exists()


def test_verify_names_every_damage_with_its_place(home: Path, heald_cli: CommandRunner) -> None:
    assert heald_cli("sessions", "verify").stdout == "2 sessions checked, 0 with faults\n"
    place = damage(home, "aa-first")
    (home / "sessions" / "ab-second" / "session.json").write_text("{")
    (home / "sessions" / "stray.txt").write_text("hello")
    done = heald_cli("sessions", "verify", code=1)
    lines = done.stdout.splitlines()
    told = f"aa-first: line: tail.jsonl at byte {place}, 1 event lost from 1 on: "
    assert lines[0].startswith(told)
    assert lines[1].startswith("ab-second: ")
    assert lines[2].startswith("stray.txt: ")
    assert lines[3] == "3 sessions checked, 3 with faults"

    (one,) = json.loads(heald_cli("sessions", "verify", "aa", "--json", code=1).stdout)
    (found,) = one["damage"]
    assert {name: found[name] for name in ("kind", "file", "offset", "first", "count")} == {
        "kind": "line",
        "file": "tail.jsonl",
        "offset": place,
        "first": 1,
        "count": 1,
    }
    assert "SESSION_NOT_FOUND" in heald_cli("sessions", "verify", "zz", code=1).stderr


def test_salvage_makes_a_session_writable_again_and_says_what_was_lost(
    home: Path, heald_cli: CommandRunner
) -> None:
    damage(home, "aa-first")
    broken = (home / "sessions" / "aa-first" / "tail.jsonl").read_bytes()
    refused = heald_cli("sessions", "rename", "aa", "New", code=1)
    assert "SESSION_DAMAGED" in refused.stderr
    done = heald_cli("sessions", "salvage", "aa")
    assert done.stdout.splitlines()[0].startswith("aa-first: line: tail.jsonl at byte ")
    assert "1 event lost" in done.stdout.splitlines()[1]
    quarantine = home / "sessions" / "aa-first" / "quarantine"
    assert "under quarantine/" in done.stdout
    assert broken in [path.read_bytes() for path in quarantine.rglob("*") if path.is_file()]
    heald_cli("sessions", "rename", "aa", "New")
    again = json.loads(heald_cli("sessions", "salvage", "aa", "--json").stdout)
    assert again == {"id": "aa-first", "damage": []}


def test_what_to_do_about_damage_is_told_by_what_is_damaged(
    home: Path, heald_cli: CommandRunner
) -> None:
    log, header = home / "sessions" / "aa-first", home / "sessions" / "ab-second"
    (log / "tail.jsonl").rename(log / "moved")
    (log / "tail.jsonl").mkdir()
    told = heald_cli("sessions", "show", "aa", code=1).stderr
    assert "`heald sessions salvage aa-first` makes it writable again" in told
    (header / "session.json").write_text("{")
    told = heald_cli("sessions", "show", "ab", code=1).stderr
    assert "move what there is to the trash with `heald sessions delete ab-second`" in told
    assert "salvage" not in told
    heald_cli("sessions", "delete", "ab-second")
