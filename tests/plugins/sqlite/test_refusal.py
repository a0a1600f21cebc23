"""A file that is damaged or another's stays as it is, and the next name is begun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from heald_sqlite import DerivedDatabase, Schema


def sqlite_file(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "kind", ["garbage", "short", "one byte", "foreign", "foreign wal", "other version", "directory"]
)
async def test_a_file_that_cannot_be_used_is_left_and_the_next_name_begun(
    folder: Path, schema: Schema, words: Any, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    path = folder / "words-v1.sqlite"
    path.parent.mkdir()
    match kind:
        case "garbage":
            path.write_bytes(b"not a database at all" * 300)
        case "short":
            path.write_bytes(b"SQLite format 3\0")
        case "one byte":
            path.write_bytes(b"S")
        case "foreign":
            sqlite_file(path, "CREATE TABLE words (mine)")
        case "foreign wal":
            sqlite_file(path, "PRAGMA journal_mode = wal", "CREATE TABLE words (mine)")
        case "other version":
            mark = f"PRAGMA application_id = {schema.application_id}"
            sqlite_file(path, mark, "PRAGMA user_version = 9")
        case _:
            path.mkdir()
    before = contents(path), path.stat().st_mtime_ns
    for _ in range(2):
        async with DerivedDatabase(folder, schema) as database:
            for word in ("warp", "weft"):
                assert await words.add(database, word)
            assert await words.all(database) == ["warp", "weft"]
            assert database.path.name == "words-v1.1.sqlite"
    assert (contents(path), path.stat().st_mtime_ns) == before
    assert not list(path.parent.glob("words-v1.sqlite?*"))
    assert len(caplog.records) == 1


def contents(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


async def test_damage_behind_the_header_is_met_once_and_left_behind(
    folder: Path, schema: Schema, words: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with DerivedDatabase(folder, schema) as database:
        await words.add(database, "warp")
        path = database.path
    data = bytearray(path.read_bytes())
    data[100:] = b"\xff" * (len(data) - 100)
    path.write_bytes(data)
    async with DerivedDatabase(folder, schema) as database:
        assert await words.all(database) == []
        assert await words.add(database, "weft")
        assert await words.all(database) == ["weft"]
    async with DerivedDatabase(folder, schema) as database:
        assert await words.all(database) == ["weft"]
    assert path.read_bytes() == bytes(data)
    assert len(caplog.records) == 1


async def test_a_damaged_file_can_be_made_anew_too(
    folder: Path, schema: Schema, words: Any
) -> None:
    async with DerivedDatabase(folder, schema) as database:
        await words.add(database, *(f"word {n}" for n in range(1000)))
        path = database.path
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    async with DerivedDatabase(folder, schema) as database:
        await database.reset()
        assert await words.all(database) == []


async def test_another_version_of_the_tables_is_another_file(
    database: DerivedDatabase, words: Any, folder: Path
) -> None:
    await words.add(database, "warp")
    script = "CREATE TABLE words (word TEXT PRIMARY KEY, length INTEGER)"
    newer = Schema(name="words", version=2, application_id=0x48455354, script=script)
    async with DerivedDatabase(folder, newer) as other:
        assert await words.all(other) is None
        await other.reset()
        assert other.path.name == "words-v2.sqlite"
    assert await words.all(database) == ["warp"]


async def test_an_empty_file_is_one_that_was_just_begun(
    folder: Path, schema: Schema, words: Any
) -> None:
    path = folder / "words-v1.sqlite"
    path.parent.mkdir()
    path.touch()
    path.with_name("words-v1.sqlite-wal").write_bytes(b"what is left of a deleted one" * 100)
    async with DerivedDatabase(folder, schema) as database:
        assert await words.add(database, "warp")
        assert database.path.name == "words-v1.sqlite"
        assert await words.all(database) == ["warp"]
