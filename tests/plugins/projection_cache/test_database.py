"""The file itself: it may be deleted, damaged, foreign, busy, or opened by many at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import apsw
import pytest

from heald import Host
from heald_projection import CellState, Snapshot
from heald_projection_cache import Checkpoint, projection_cache, rows
from heald_projection_cache.database import BUSY_MS, Database
from heald_projection_cache.rows import LogIdentity
from heald_query import session_query
from heald_session import APPEND, Header, LogOffset, SessionId, session_store

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]
HEADER = Header(version=1, id=SessionId("one"), log_id="a", created_at=5)
LOG = LogIdentity.of(HEADER, LogOffset(0))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with Database(tmp_path / "cache") as opened:
        yield opened


def checkpoint(offset: int, *keys: str, version: int = 1, value: Any = None) -> Checkpoint:
    states = (CellState(key, version, LogOffset(offset), value or offset) for key in keys)
    return Checkpoint(LogOffset(offset), f"event {offset}", tuple(states))


async def write(database: Database, kept: Checkpoint, log: LogIdentity = LOG) -> bool:
    return await database.write(lambda connection: rows.write(connection, log, kept, ()))


async def read(database: Database, *keys: str, log: LogIdentity = LOG) -> Checkpoint | None:
    return await database.read(lambda connection: rows.highest(connection, log, keys))


async def test_what_is_written_is_read(database: Database) -> None:
    kept = checkpoint(3, "a", "b", value={"deep": [1, "ü", None]})
    assert await write(database, kept)
    assert await read(database, "a", "b") == kept
    assert await read(database, "b") == checkpoint(3, "b", value={"deep": [1, "ü", None]})


async def test_reading_before_anything_was_written_makes_no_file(database: Database) -> None:
    assert await read(database, "a") is None
    assert not database.path.exists()


async def test_an_older_offset_never_replaces_a_newer_one_of_the_same_version(
    database: Database,
) -> None:
    await write(database, checkpoint(5, "a"))
    await write(database, checkpoint(3, "a"))
    assert await read(database, "a") == checkpoint(5, "a")


async def test_another_version_replaces_whatever_the_offset(database: Database) -> None:
    await write(database, checkpoint(5, "a"))
    await write(database, checkpoint(3, "a", version=2))
    assert await read(database, "a") == checkpoint(3, "a", version=2)


async def test_another_log_replaces_every_row_of_its_session_and_no_other(
    database: Database,
) -> None:
    other = LogIdentity(SessionId("two"), LOG.facts)
    await write(database, checkpoint(5, "a", "b"))
    await write(database, checkpoint(7, "a"), other)
    recreated = LogIdentity.of(HEADER, LogOffset(1))
    await write(database, checkpoint(2, "a"), recreated)
    assert await read(database, "a", "b") is None
    assert await read(database, "a", "b", log=recreated) == checkpoint(2, "a")
    assert await read(database, "a", log=other) == checkpoint(7, "a")


async def test_only_rows_at_the_highest_offset_are_served(database: Database) -> None:
    await write(database, checkpoint(5, "a", "b"))
    await write(database, checkpoint(6, "a"))
    assert await read(database, "a", "b") == checkpoint(6, "a")


async def test_a_row_that_is_not_json_is_passed_over(database: Database) -> None:
    await write(database, checkpoint(5, "a", "b"))

    def garble(connection: apsw.Connection) -> None:
        connection.execute("UPDATE checkpoints SET value = '{' WHERE key = 'a'")

    await database.write(garble)
    assert await read(database, "a", "b") == checkpoint(5, "b")


async def test_a_write_that_fails_half_way_leaves_nothing(database: Database) -> None:
    await write(database, checkpoint(5, "a"))

    def half(connection: apsw.Connection) -> None:
        rows.write(connection, LOG, checkpoint(6, "a"), ())
        raise apsw.IOError("the disk went away")

    assert not await database.write(half)
    assert await read(database, "a") == checkpoint(5, "a")


async def test_a_write_that_finds_the_file_busy_is_dropped_with_one_line(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    await write(database, checkpoint(5, "a"))
    other = apsw.Connection(str(database.path))
    other.execute("BEGIN IMMEDIATE")
    try:
        assert BUSY_MS < 5_000
        assert not await write(database, checkpoint(6, "a"))
        assert await read(database, "a") == checkpoint(5, "a")
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert len(caplog.records) == 1
    assert await write(database, checkpoint(7, "a"))


def sqlite_file(path: Path, *statements: str) -> bytes:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path.read_bytes()


@pytest.mark.parametrize("kind", ["garbage", "short", "foreign", "other version"])
async def test_a_file_that_cannot_be_used_is_left_and_the_next_name_begun(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    path = folder / "checkpoints-v1.sqlite"
    match kind:
        case "garbage":
            path.write_bytes(b"not a database at all" * 300)
        case "short":
            path.write_bytes(b"SQLite format 3\0")
        case "foreign":
            sqlite_file(path, "CREATE TABLE checkpoints (mine)")
        case _:
            sqlite_file(path, "PRAGMA application_id = 1212500035", "PRAGMA user_version = 9")
    before = path.read_bytes()
    async with Database(folder) as database:
        for offset in (1, 2):
            assert await write(database, checkpoint(offset, "a"))
            assert await read(database, "a") == checkpoint(offset, "a")
        assert database.path.name == "checkpoints-v1.1.sqlite"
    assert path.read_bytes() == before
    assert len(caplog.records) == 1


async def test_damage_behind_the_header_is_met_once_and_left_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "cache"
    async with Database(folder) as database:
        await write(database, checkpoint(1, "a"))
        path = database.path
    data = bytearray(path.read_bytes())
    data[100:] = b"\xff" * (len(data) - 100)
    path.write_bytes(data)
    async with Database(folder) as database:
        assert await read(database, "a") is None
        assert await write(database, checkpoint(2, "a"))
        assert await read(database, "a") == checkpoint(2, "a")
    assert path.read_bytes() == bytes(data)
    assert len(caplog.records) == 1


async def test_a_folder_that_cannot_be_made_costs_the_write_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file")
    async with Database(tmp_path / "cache") as database:
        assert not await write(database, checkpoint(1, "a"))
        assert await read(database, "a") is None
    assert "passed over" in caplog.text


async def test_the_files_are_the_owners_alone(database: Database) -> None:
    await write(database, checkpoint(1, "a"))
    assert database.path.parent.stat().st_mode & 0o777 == 0o700
    modes = {file.stat().st_mode & 0o777 for file in database.path.parent.iterdir()}
    assert modes == {0o600}


MANY = """
import asyncio, sys
from pathlib import Path
from heald_projection import CellState
from heald_projection_cache import Checkpoint, rows
from heald_projection_cache.database import Database
from heald_projection_cache.rows import LogIdentity

async def main(number):
    async with Database(Path(sys.argv[1])) as database:
        log = LogIdentity(f"session {number}", "facts")
        kept = Checkpoint(1, "w", (CellState("a", 1, 1, number),))
        print("ready", flush=True)
        sys.stdin.readline()
        assert await database.write(lambda c: rows.write(c, log, kept, ()))
        found = await database.read(lambda c: rows.highest(c, log, ["a"]))
        assert found.states[0].state == number, found

asyncio.run(main(int(sys.argv[2])))
"""


def test_processes_that_open_a_new_database_at_once_all_succeed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MANY, str(tmp_path / "cache")]
    processes = [
        subprocess.Popen(
            [*command, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(6)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")


async def stored_session(host: Host) -> SessionId:
    store = host.scope.require(session_store)
    session = await store.create(cwd="/loom")
    session.append("turn/start", {"turn": 1})
    session.append("user/message", {"id": "m", "text": "Count"}, surface=APPEND)
    session.append("turn/end", {"turn": 1, "outcome": "completed"})
    await store.dispose(session)
    return session.id


async def answers(host: Host, name: SessionId) -> Snapshot:
    query = host.scope.require(session_query)
    async with query.observe_session(name, ["title", "sessionStats"]) as observed:
        return observed.projections


@pytest.mark.parametrize("harm", ["delete", "garble"])
async def test_answers_are_the_same_without_the_file(
    open_rows: OpenHost, heald_home: Path, harm: str
) -> None:
    async with open_rows() as host:
        id_ = await stored_session(host)
        before = await answers(host, id_)
        assert await host.scope.require(projection_cache).cached_snapshot(
            (await host.scope.require(session_query).list_sessions())[0].header or HEADER,
            LogOffset(0),
            ["title"],
        )
    for file in (heald_home / "cache").iterdir():
        if harm == "delete":
            file.unlink()
        elif file.suffix == ".sqlite":
            file.write_bytes(b"\0" * 5000)
    async with open_rows() as host:
        assert await answers(host, id_) == before
