"""The doctor's check of the search index."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from heald import Host, Row
from heald.testing import HostFactory
from heald_doctor import Check, checks
from heald_query import session_query
from heald_session import APPEND, SessionId, session_store

ROWS = [
    Row(id=name, plugin=name)
    for name in ("session", "persistence", "projection", "query", "doctor")
]


@pytest.fixture
async def host(heald_host: HostFactory) -> AsyncIterator[Host]:
    """Open a host with two indexed sessions."""
    async with heald_host(rows=ROWS) as host:
        store = host.scope.require(session_store)
        for name in ("one", "two"):
            session = await store.create(cwd="/loom", id=SessionId(name))
            for text in ("copper", "bronze"):
                session.append("user/message", {"id": "m", "text": text}, surface=APPEND)
            await store.dispose(session)
        await host.scope.require(session_query).search("copper")
        yield host


def check_of(host: Host) -> Check:
    [found] = [c.value for c in host.scope.collect(checks) if c.value.name == "search-index"]
    return found


async def findings(host: Host) -> list[str]:
    told: list[tuple[int, int | None]] = []

    def progress(done: int, total: int | None = None) -> None:
        told.append((done, total))

    found = await check_of(host).run(progress)
    assert told[-1] == (2, 2)
    assert {finding.severity for finding in found} <= {"warning"}
    return [finding.message for finding in found]


async def test_an_index_that_fits_its_logs_is_well(host: Host) -> None:
    assert await findings(host) == []


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("DELETE FROM documents WHERE seq = 1 AND session = 1", "1 texts are indexed of the 2"),
        ("UPDATE documents SET text = 'tin' WHERE seq = 1 AND session = 1", "event 1 is indexed"),
        ("UPDATE documents SET seq = 7 WHERE seq = 1 AND session = 1", "event 1 is indexed"),
        (
            "UPDATE documents SET number = number | 1 WHERE seq = 0 AND session = 1",
            "event 0 is indexed",
        ),
        (
            "UPDATE documents SET number = number | 3 WHERE seq = 0 AND session = 1",
            "event 0 is indexed",
        ),
        ("UPDATE sessions SET log_id = 'x' WHERE number = 1", "the index has another log"),
        ('UPDATE sessions SET "offset" = 9 WHERE number = 1', "the index is at 9"),
        ("UPDATE sessions SET witness = 'x' WHERE number = 1", "the log has another event"),
        ("UPDATE sessions SET id = 'three' WHERE number = 1", "it is indexed and not stored"),
    ],
)
async def test_what_the_logs_do_not_bear_out_is_found_and_made_anew(
    host: Host, heald_home: Path, sql: str, expected: str
) -> None:
    connection = apsw.Connection(str(heald_home / "cache" / "search-v1.sqlite"))
    connection.execute(sql)
    connection.close()
    [message] = await findings(host)
    assert expected in message
    rebuild = check_of(host).rebuild
    assert rebuild is not None
    told: list[tuple[int, int | None]] = []
    await rebuild(lambda done, total=None: told.append((done, total)))
    assert told[-1] == (2, 2)
    assert await findings(host) == []
    assert (await host.scope.require(session_query).search("copper")).total == 2
