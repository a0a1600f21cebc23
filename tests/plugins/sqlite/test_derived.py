"""One process with its file: written whole, read at one moment, deleted, made anew."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from heald_sqlite import DerivedDatabase, ResetFailed, Schema
from heald_sqlite.opening import BUSY_MS


async def test_what_is_written_is_read(database: DerivedDatabase, words: Any) -> None:
    assert await words.add(database, "warp", "weft")
    assert await words.all(database) == ["warp", "weft"]


async def test_reading_before_anything_was_written_makes_no_file(
    database: DerivedDatabase, words: Any
) -> None:
    assert await words.all(database) is None
    assert not database.path.parent.exists()


async def test_a_write_that_fails_half_way_leaves_nothing(
    database: DerivedDatabase, words: Any
) -> None:
    await words.add(database, "warp")

    def half(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO words VALUES ('weft')")
        raise apsw.IOError("the disk went away")

    assert not await database.write(half)
    assert await words.all(database) == ["warp"]


async def test_a_mistake_in_the_work_is_raised_and_leaves_nothing(
    database: DerivedDatabase, words: Any
) -> None:
    def mistaken(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO words VALUES ('weft')")
        raise KeyError("weft")

    with pytest.raises(KeyError):
        await database.write(mistaken)
    assert await words.all(database) == []


async def test_what_one_read_sees_is_of_one_moment(database: DerivedDatabase, words: Any) -> None:
    await words.add(database, "warp")
    other = apsw.Connection(str(database.path))

    def twice(connection: apsw.Connection) -> tuple[int, int]:
        first = connection.execute("SELECT count(*) FROM words").get
        other.execute("INSERT INTO words VALUES ('weft')")
        return first, connection.execute("SELECT count(*) FROM words").get

    try:
        assert await database.read(twice) == (1, 1)
        assert await database.read(lambda c: c.execute("SELECT count(*) FROM words").get) == 2
    finally:
        other.close()


async def test_a_write_that_finds_the_file_busy_is_dropped_with_one_line(
    database: DerivedDatabase, words: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await words.add(database, "warp")
    other = apsw.Connection(str(database.path))
    other.execute("BEGIN IMMEDIATE")
    try:
        assert BUSY_MS < 5_000
        assert not await words.add(database, "weft")
        assert await words.all(database) == ["warp"]
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert len(caplog.records) == 1
    assert await words.add(database, "heald")


async def test_trouble_that_lasts_is_told_of_once(
    database: DerivedDatabase, words: Any, caplog: pytest.LogCaptureFixture
) -> None:
    database.path.parent.write_text("a file")
    for _ in range(3):
        assert not await words.add(database, "warp")
        assert await words.all(database) is None
    assert [record.message for record in caplog.records if "passed over" in record.message]
    assert len(caplog.records) == 1


async def test_the_files_are_the_owners_alone(database: DerivedDatabase, words: Any) -> None:
    await words.add(database, "warp")
    assert database.path.parent.stat().st_mode & 0o777 == 0o700
    modes = {file.stat().st_mode & 0o777 for file in database.path.parent.iterdir()}
    assert modes == {0o600}


async def test_a_home_whose_name_is_no_text_is_as_good_as_any(
    tmp_path: Path, schema: Schema, words: Any, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / os.fsdecode(b"\xff#a?b%41")
    for _ in range(2):
        async with DerivedDatabase(folder, schema) as database:
            assert await words.add(database, "warp")
            assert await words.all(database) == ["warp"]
            assert database.path.exists()
    assert not caplog.records


async def test_what_is_asked_after_the_end_is_passed_over(
    folder: Path, schema: Schema, words: Any
) -> None:
    async with DerivedDatabase(folder, schema) as database:
        await words.add(database, "warp")
    assert not await words.add(database, "weft")
    assert await words.all(database) is None
    with pytest.raises(ResetFailed):
        await database.reset()


def descriptors(folder: Path) -> list[str]:
    """Return what this process has open below a folder."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(link.readlink()))
    return [path for path in found if path.startswith(str(folder))]


async def test_whoever_is_cancelled_while_it_closes_leaves_nothing_open(
    folder: Path, schema: Schema, words: Any
) -> None:
    busy = threading.Event()
    database = DerivedDatabase(folder, schema)

    async def use() -> None:
        async with database:
            await words.add(database, "warp")
            working.append(asyncio.create_task(database.read(lambda _: busy.wait(60))))
            await asyncio.sleep(0)
            leaving.set()

    working: list[asyncio.Task[Any]] = []
    leaving = asyncio.Event()
    using = asyncio.create_task(use())
    await leaving.wait()
    await asyncio.sleep(0)  # now it waits for the thread
    using.cancel()
    await asyncio.wait([using])
    assert using.cancelled()
    assert descriptors(folder)
    threads = [one for one in threading.enumerate() if one.name.startswith("heald-words")]
    busy.set()
    await asyncio.wait(working)
    for thread in threads:
        await asyncio.to_thread(thread.join, 30)
    assert descriptors(folder) == []


async def test_a_file_with_bytes_that_are_no_text_is_damaged(
    database: DerivedDatabase, words: Any
) -> None:
    def spoil(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO words VALUES (CAST(x'b0' AS TEXT))")

    await database.write(spoil)
    damaged = database.path
    assert await words.all(database) == []
    assert database.path != damaged
    assert damaged.exists()


async def test_a_file_that_is_deleted_while_it_is_open_is_begun_anew(
    database: DerivedDatabase, words: Any, folder: Path, schema: Schema
) -> None:
    await words.add(database, "warp")
    database.path.unlink()
    assert await words.all(database) == []
    await words.add(database, "weft")
    async with DerivedDatabase(folder, schema) as other:
        assert await words.all(other) == ["weft"]


async def test_whoever_still_has_a_deleted_file_open_harms_no_new_one(
    database: DerivedDatabase, words: Any, schema: Schema
) -> None:
    await words.add(database, "warp")
    database.path.unlink()
    async with DerivedDatabase(database.path.parent, schema) as other:
        assert await words.add(other, "weft")
        assert await words.all(other) == ["weft"]
        assert await words.add(database, "heald")
        assert await words.add(other, "eye")
        assert await words.all(database) == await words.all(other) == ["eye", "heald", "weft"]
    assert apsw.Connection(str(database.path)).pragma("integrity_check") == "ok"


async def test_the_one_who_lets_a_deleted_file_go_leaves_the_new_ones_log_alone(
    folder: Path, words: Any, schema: Schema
) -> None:
    async with DerivedDatabase(folder, schema) as other:
        async with DerivedDatabase(folder, schema) as first:
            await words.add(first, "warp")
            first.path.unlink()
            await words.add(other, "weft")
        assert (folder / "words-v1.sqlite-wal").exists()
        await words.add(other, "heald")
        assert await words.all(other) == ["heald", "weft"]
        assert counted(other.path) == 2


def counted(path: Path) -> int:
    """Count the words as another process sees them, which closes the file then."""
    script = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
print(connection.execute("SELECT count(*) FROM words").get)
connection.close()
"""
    command = [sys.executable, "-c", script, str(path)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


async def test_opening_a_file_twice_in_one_process_takes_no_lock_from_the_first(
    database: DerivedDatabase, words: Any, folder: Path, schema: Schema
) -> None:
    await words.add(database, "warp")
    assert is_locked(database.path)
    async with DerivedDatabase(folder, schema) as second:
        await words.add(second, "weft")
    assert is_locked(database.path)
    assert await words.all(database) == ["warp", "weft"]


def is_locked(path: Path) -> bool:
    """Say whether another process sees the lock by which SQLite knows that a file is in use."""
    script = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
    except OSError:
        print("locked")
"""
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout == "locked\n"


async def test_everything_can_be_forgotten_while_others_have_the_file_open(
    folder: Path, words: Any
) -> None:
    script = """
        CREATE TABLE words (word TEXT PRIMARY KEY);
        CREATE INDEX backwards ON words (word DESC);
        CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT);
        CREATE VIRTUAL TABLE found USING fts5(text, content='', tokenize='unicode61');
        INSERT INTO words VALUES ('first');
    """
    schema = Schema(name="found", version=3, application_id=7, script=script)
    async with DerivedDatabase(folder, schema) as one, DerivedDatabase(folder, schema) as other:

        def fill(connection: apsw.Connection) -> None:
            connection.execute("INSERT INTO found (rowid, text) VALUES (1, 'warp and weft')")
            connection.execute("INSERT INTO numbered (word) VALUES ('warp')")
            connection.execute("INSERT INTO words VALUES ('warp')")

        def hits(connection: apsw.Connection) -> tuple[int, int]:
            found = connection.execute("SELECT count(*) FROM found WHERE found MATCH 'weft'").get
            return found, connection.execute("SELECT count(*) FROM numbered").get

        assert await one.write(fill)
        assert await other.read(hits) == (1, 1)
        await other.reset()
        assert await one.read(hits) == (0, 0)
        assert await words.all(one) == ["first"]
        assert await one.write(fill)
        assert await other.read(hits) == (1, 1)


async def test_to_forget_what_was_never_kept_is_no_error(
    database: DerivedDatabase, words: Any
) -> None:
    await database.reset()
    assert await words.all(database) == []


async def test_what_cannot_be_forgotten_now_is_an_error_that_says_why(
    database: DerivedDatabase, words: Any
) -> None:
    await words.add(database, "warp")
    other = apsw.Connection(str(database.path))
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(ResetFailed, match=r"words-v1.sqlite.*database is locked"):
            await database.reset()
    finally:
        other.close()
    assert await words.all(database) == ["warp"]


async def test_work_that_waits_for_the_file_does_not_hold_the_loop(
    database: DerivedDatabase, words: Any
) -> None:
    await words.add(database, "warp")
    other = apsw.Connection(str(database.path))
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(words.add(database, "weft"))
    turns = 0
    while not waiting.done():
        await asyncio.sleep(0.01)
        turns += 1
        if turns == 5:
            other.execute("ROLLBACK")
    other.close()
    assert await waiting
    assert turns >= 5
