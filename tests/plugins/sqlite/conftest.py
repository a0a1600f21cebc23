"""A file of derived data with one table, alone or in processes of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from heald_sqlite import DerivedDatabase, Schema

SCHEMA = Schema(
    name="words",
    version=1,
    application_id=0x48455354,
    script="CREATE TABLE words (word TEXT PRIMARY KEY)",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def schema() -> Schema:
    return SCHEMA


@pytest.fixture
async def database(folder: Path) -> AsyncIterator[DerivedDatabase]:
    async with DerivedDatabase(folder, SCHEMA) as opened:
        yield opened


class Words:
    """What the tests keep in a file."""

    @staticmethod
    async def add(database: DerivedDatabase, *words: str) -> bool:
        def work(connection: apsw.Connection) -> None:
            rows = [(word,) for word in words]
            connection.executemany("INSERT OR IGNORE INTO words VALUES (?)", rows)

        return await database.write(work)

    @staticmethod
    async def all(database: DerivedDatabase) -> list[str] | None:
        def work(connection: apsw.Connection) -> list[str]:
            return [row[0] for row in connection.execute("SELECT word FROM words ORDER BY word")]

        return await database.read(work)


@pytest.fixture
def words() -> Words:
    return Words()
