"""Rows in the database: moved together, never backwards, and only what changed is written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from heald_projection import CellState
from heald_projection_cache import Checkpoint, rows
from heald_projection_cache.rows import SCHEMA, LogIdentity
from heald_session import Header, LogOffset, SessionId
from heald_sqlite import DerivedDatabase

HEADER = Header(version=1, id=SessionId("one"), log_id="a", created_at=5)
LOG = LogIdentity.of(HEADER, LogOffset(0))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[DerivedDatabase]:
    async with DerivedDatabase(tmp_path / "cache", SCHEMA) as opened:
        yield opened


def checkpoint(offset: int, *keys: str, version: int = 1, value: Any = None) -> Checkpoint:
    return checkpoint_of(offset, dict.fromkeys(keys, (version, value or offset)))


def checkpoint_of(offset: int, states: dict[str, tuple[int, Any]]) -> Checkpoint:
    end = LogOffset(offset)
    cells = (CellState(key, version, end, value) for key, (version, value) in states.items())
    return Checkpoint(end, f"event {offset}", tuple(cells))


async def write(database: DerivedDatabase, kept: Checkpoint, log: LogIdentity = LOG) -> None:
    assert await database.write(lambda connection: rows.write(connection, log, kept))


async def read(database: DerivedDatabase, *keys: str, log: LogIdentity = LOG) -> Checkpoint | None:
    kept = await database.read(lambda connection: rows.kept_for(connection, log.session_id))
    return None if kept is None or kept.log != log else kept.checkpoint(keys)


async def test_what_is_written_is_read(database: DerivedDatabase) -> None:
    kept = checkpoint(3, "a", "b", value={"deep": [1, "ü", None]})
    await write(database, kept)
    assert await read(database, "a", "b") == kept
    assert await read(database, "b") == checkpoint(3, "b", value={"deep": [1, "ü", None]})


async def test_an_older_offset_never_replaces_a_newer_one_of_the_same_version(
    database: DerivedDatabase,
) -> None:
    await write(database, checkpoint(5, "a", "b"))
    await write(database, checkpoint(3, "a"))
    await write(database, checkpoint(4, "b", "c"))
    assert await read(database, "a", "b", "c") == checkpoint(5, "a", "b")


async def test_another_version_replaces_whatever_the_offset(database: DerivedDatabase) -> None:
    await write(database, checkpoint(5, "a"))
    await write(database, checkpoint(3, "a", version=2))
    assert await read(database, "a") == checkpoint(3, "a", version=2)


async def test_of_a_newer_checkpoint_only_what_is_of_another_version_goes(
    database: DerivedDatabase,
) -> None:
    await write(database, checkpoint(5, "a", "b"))
    await write(database, checkpoint_of(3, {"a": (2, "new"), "b": (1, "old")}))
    assert await read(database, "a", "b") == checkpoint(5, "b")


async def test_another_log_replaces_every_row_of_its_session_and_no_other(
    database: DerivedDatabase,
) -> None:
    other = LogIdentity(SessionId("two"), LOG.facts)
    await write(database, checkpoint(5, "a", "b"))
    await write(database, checkpoint(7, "a"), other)
    recreated = LogIdentity.of(HEADER, LogOffset(1))
    await write(database, checkpoint(2, "a"), recreated)
    assert await read(database, "a", "b") is None
    assert await read(database, "a", "b", log=recreated) == checkpoint(2, "a")
    assert await read(database, "a", log=other) == checkpoint(7, "a")


async def test_a_state_that_was_not_saved_with_the_others_is_not_served_as_if_it_had_been(
    database: DerivedDatabase,
) -> None:
    await write(database, checkpoint(5, "a", "b"))
    await write(database, checkpoint(6, "a"))
    assert await read(database, "a", "b") == checkpoint(6, "a")
    await write(database, checkpoint(7))
    assert await read(database, "a", "b") == checkpoint(7)


async def test_another_history_of_the_same_length_replaces_what_is_kept(
    database: DerivedDatabase,
) -> None:
    await write(database, checkpoint(5, "a"))
    other = Checkpoint(LogOffset(5), "another event", checkpoint(5, "a").states)
    await write(database, other)
    assert await read(database, "a") == other


async def test_a_row_that_is_not_json_is_passed_over(database: DerivedDatabase) -> None:
    await write(database, checkpoint(5, "a", "b"))

    def garble(connection: apsw.Connection) -> None:
        connection.execute("UPDATE states SET value = '{' WHERE key = 'a'")

    await database.write(garble)
    assert await read(database, "a", "b") == checkpoint(5, "b")


async def test_what_is_dropped_is_that_very_checkpoint(database: DerivedDatabase) -> None:
    old, new = checkpoint(5, "a"), checkpoint(6, "a")
    await write(database, new)
    await database.write(lambda connection: rows.forget(connection, LOG.session_id, old))
    assert await read(database, "a") == new
    await database.write(lambda connection: rows.forget(connection, LOG.session_id, new))
    assert await read(database, "a") is None
    assert await database.read(lambda c: c.execute("SELECT count(*) FROM states").get) == 0


PAGE = 4096 + 24


async def pages_written(database: DerivedDatabase, kept: Checkpoint, log: LogIdentity) -> int:
    """Return how many pages a write adds to the database's log."""
    wal = database.path.with_name(database.path.name + "-wal")
    connection = apsw.Connection(str(database.path))
    assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get == (0, 0, 0)
    connection.close()
    await write(database, kept, log)
    return wal.stat().st_size // PAGE


@pytest.mark.parametrize("sessions", [10, 3_000])
async def test_what_a_checkpoint_writes_does_not_depend_on_the_number_of_sessions(
    database: DerivedDatabase, sessions: int
) -> None:
    keys = [f"key{n}" for n in range(8)]
    logs = [LogIdentity(SessionId(f"{n * 7919 % sessions:05}"), "facts") for n in range(sessions)]

    def fill(connection: apsw.Connection) -> None:
        for log in logs:
            rows.write(connection, log, checkpoint(100, *keys, value={"text": "warp" * 10}))

    await database.write(fill)
    log = logs[sessions // 2]
    moved = checkpoint(101, *keys, value={"text": "weft" * 10})
    # one leaf of each table, or two where a session's states began on the page before
    assert await pages_written(database, moved, log) <= 4
    same = checkpoint(102, *keys, value={"text": "weft" * 10})
    assert await pages_written(database, same, log) == 1
    assert await pages_written(database, same, log) == 0


async def test_a_value_that_did_not_change_is_not_written_again(database: DerivedDatabase) -> None:
    big = "x" * 1_000_000
    await write(database, checkpoint_of(5, {"big": (1, big), "small": (1, 0)}))
    moved = checkpoint_of(6, {"big": (1, big), "small": (1, 1)})
    assert await pages_written(database, moved, LOG) <= 2
    assert await read(database, "big", "small") == moved


RACING = """
import asyncio, sys
from pathlib import Path
from heald_projection import CellState
from heald_projection_cache import Checkpoint, rows
from heald_projection_cache.rows import SCHEMA, LogIdentity
from heald_sqlite import DerivedDatabase

async def main(folder, first, last):
    async with DerivedDatabase(Path(folder), SCHEMA) as database:
        log = LogIdentity("one", "facts")
        highest = 0
        print("ready", flush=True)
        sys.stdin.readline()
        for offset in range(int(first), int(last), 2):
            kept = Checkpoint(offset, f"event {offset}", (CellState("a", 1, offset, offset),))
            assert await database.write(lambda c: rows.write(c, log, kept))
            found = await database.read(lambda c: rows.kept_for(c, "one"))
            assert found.offset >= max(highest, offset), (found, highest, offset)
            (state,) = found.checkpoint(["a"]).states
            assert state.state == found.offset and found.witness == f"event {found.offset}"
            highest = found.offset

asyncio.run(main(*sys.argv[1:]))
"""


def test_of_two_racing_writers_the_one_who_is_behind_changes_nothing(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RACING, str(tmp_path / "cache"), str(first), str(last)],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )
        for first, last in [(1, 300), (2, 100)]
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
