"""Many processes with one file: nobody fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from heald_sqlite import Schema

PROCESSES = 8

_SCHEMA = """
import asyncio, sys
from pathlib import Path
from heald_sqlite import DerivedDatabase, Schema

SCHEMA = Schema(name="words", version=1, application_id=0x48455354,
                script="CREATE TABLE words (word TEXT PRIMARY KEY)")

def count(connection):
    return connection.execute("SELECT count(*) FROM words").get

async def told():
    print("ready", flush=True)
    return await asyncio.to_thread(sys.stdin.readline)
"""

OPENING = (
    _SCHEMA
    + """
async def main(folder, number):
    while (round := (await told()).strip()):
        async with DerivedDatabase(Path(folder, round), SCHEMA) as database:
            found = await database.read(count)
            assert found is None or 0 <= found < 8, found
            insert = f"INSERT INTO words VALUES ('{number}')"
            assert await database.write(lambda c: c.execute(insert))
            assert await database.read(count) >= 1

asyncio.run(main(*sys.argv[1:]))
"""
)

READING = (
    _SCHEMA
    + """
async def main(folder, number):
    await told()
    reads = 0
    waiting = asyncio.create_task(told())
    while not waiting.done():
        async with DerivedDatabase(Path(folder), SCHEMA) as database:
            for _ in range(20):
                assert await database.read(count) == 1
                reads += 1
    assert reads

asyncio.run(main(*sys.argv[1:]))
"""
)


@contextmanager
def processes(script: str, folder: Path) -> Iterator[Sequence[subprocess.Popen[str]]]:
    """Run a script many times; at the end each is told to stop, and must have nothing to say."""
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(folder), str(number)],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    try:
        yield started
        for process in started:
            _, errors = process.communicate("\n", timeout=120)
            assert (process.returncode, errors) == (0, "")
    finally:
        for process in started:
            process.kill()
            process.wait()


def ready(started: Sequence[subprocess.Popen[str]]) -> None:
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"


def tell(started: Sequence[subprocess.Popen[str]], word: str) -> None:
    for process in started:
        assert process.stdin is not None
        process.stdin.write(word + "\n")
        process.stdin.flush()


def all_open_new_ones(folder: Path, rounds: int) -> None:
    with processes(OPENING, folder) as started:
        ready(started)
        for number in range(rounds):
            tell(started, f"round-{number}")
            ready(started)
    for number in range(rounds):
        (file,) = (folder / f"round-{number}").glob("*.sqlite")
        connection = apsw.Connection(str(file))
        assert connection.execute("SELECT count(*) FROM words").get == PROCESSES
        connection.close()


def all_read_beside_a_writer(folder: Path, schema: Schema, seconds: float) -> None:
    with processes(READING, folder) as started:
        ready(started)
        begun = [sys.executable, "-c", _SCHEMA + BEGUN, str(folder)]
        subprocess.run(begun, check=True)
        connection = apsw.Connection(str(folder / f"{schema.name}-v{schema.version}.sqlite"))
        connection.execute("BEGIN IMMEDIATE; INSERT INTO words VALUES ('unseen')")
        tell(started, "go")
        ready(started)
        with pytest.raises(subprocess.TimeoutExpired):
            started[0].wait(seconds)
    connection.execute("ROLLBACK")
    connection.close()


BEGUN = """
async def main(folder):
    async with DerivedDatabase(Path(folder), SCHEMA) as database:
        assert await database.write(lambda c: c.execute("INSERT INTO words VALUES ('seen')"))

asyncio.run(main(sys.argv[1]))
"""


def test_processes_that_open_a_new_database_at_once_all_succeed(folder: Path) -> None:
    all_open_new_ones(folder, 5)


@pytest.mark.crash
def test_processes_that_open_a_new_database_at_once_all_succeed_a_hundred_times(
    folder: Path,
) -> None:
    all_open_new_ones(folder, 100)


def test_readers_do_not_wait_for_the_one_who_holds_the_write_lock(
    folder: Path, schema: Schema
) -> None:
    all_read_beside_a_writer(folder, schema, 1.5)


@pytest.mark.crash
@pytest.mark.timeout(300)
def test_readers_do_not_wait_for_one_who_holds_the_write_lock_for_half_a_minute(
    folder: Path, schema: Schema
) -> None:
    all_read_beside_a_writer(folder, schema, 30)


def test_one_who_was_stopped_while_opening_stops_nobody_for_good(folder: Path) -> None:
    folder.mkdir()
    script = f"""{_SCHEMA}
import fcntl, heald_sqlite.opening as opening
opening.OPENING_S = 0.1

async def main(folder):
    lock = open(Path(folder, "words-v1.lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    async with DerivedDatabase(Path(folder), SCHEMA) as database:
        assert not await database.write(count)
        lock.close()
        assert await database.write(count)

asyncio.run(main(sys.argv[1]))
"""
    command = [sys.executable, "-c", script, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "others have been opening it for 0.1 s; this was passed over" in done.stderr
