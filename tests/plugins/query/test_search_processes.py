"""Several processes and one index, some of which are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from heald import Host, Row
from heald.testing import HostFactory
from heald_query import session_query
from heald_query.search import index
from heald_query.search.searching import Searching
from heald_session import APPEND, SessionId, session_store

ROWS = [Row(id=name, plugin=name) for name in ("session", "persistence", "projection", "query")]
_COUNTS = """
SELECT id, count(*), count(DISTINCT seq) FROM documents JOIN sessions ON sessions.number = session
GROUP BY id ORDER BY id
"""
SESSIONS = 6
EACH = 400


@pytest.fixture
async def home(heald_host: HostFactory, heald_home: Path) -> Path:
    """Return a home of several logs, some of them sealed."""
    async with heald_host(rows=ROWS) as host:
        await filled(host)
    return heald_home


async def filled(host: Host) -> None:
    store = host.scope.require(session_store)
    for n in range(SESSIONS):
        session = await store.create(cwd="/loom", id=SessionId(f"s{n}"))
        for seq in range(EACH):
            text = f"copper {n} {seq} " + "the weaver lifts the healds " * 12
            session.append("user/message", {"id": "m", "text": text}, surface=APPEND)
        await store.dispose(session)


def searching(home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "heald", "search", "copper", "--limit", "5", "--json"],
        env={**os.environ, "HEALD_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def documents(home: Path) -> list[tuple[str, int, int]]:
    """Return how many texts are indexed of each session, and how many different ones."""
    file = home / "cache" / "search-v1.sqlite"
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(connection.execute(_COUNTS))
    finally:
        connection.close()


EVERYTHING = [(f"s{n}", EACH, EACH) for n in range(SESSIONS)]


def test_two_processes_that_index_at_once_index_each_text_once(home: Path) -> None:
    processes = [searching(home) for _ in range(2)]
    answers = []
    for process in processes:
        out, err = process.communicate(timeout=100)
        assert (process.returncode, err) == (0, "")
        answers.append(json.loads(out))
    assert answers[0] == answers[1]
    assert len(answers[0]["hits"]) == 5
    assert documents(home) == EVERYTHING


def test_an_indexing_that_is_killed_is_gone_on_with(home: Path) -> None:
    process = searching(home)
    file = home / "cache" / "search-v1.sqlite"
    deadline = time.monotonic() + 60
    while not (file.exists() and _has_documents(home)) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    out, err = (again := searching(home)).communicate(timeout=100)
    assert (again.returncode, err, len(json.loads(out)["hits"])) == (0, "", 5)
    assert documents(home) == EVERYTHING


def _has_documents(home: Path) -> bool:
    try:
        return bool(documents(home))
    except apsw.Error:  # it is being made
        return False


async def test_while_another_process_keeps_writing_what_is_indexed_is_found(
    heald_host: HostFactory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heald_sqlite.opening.BUSY_MS", 20)
    async with heald_host(rows=ROWS) as host:
        query = host.scope.require(session_query)
        assert (await query.search("copper")).total == SESSIONS * EACH
        session = await host.scope.require(session_store).resume(SessionId("s0"))
        session.append("user/message", {"id": "m", "text": "copper"}, surface=APPEND)
        await session.flush()
        other = apsw.Connection(str(home / "cache" / "search-v1.sqlite"))
        other.execute("BEGIN IMMEDIATE")
        page = await query.search("copper")
        assert page.total == SESSIONS * EACH
        assert "s0" in page.unread
        other.execute("ROLLBACK")
        other.close()
        page = await query.search("copper")
        assert (page.total, page.unread) == (SESSIONS * EACH + 1, ())


async def test_the_loser_of_a_race_goes_on_from_where_the_winner_is(
    heald_host: HostFactory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with heald_host(rows=ROWS) as host, Searching(host.scope) as other:
        add, raced = index.add, list[index.Piece]()

        def slower(connection: apsw.Connection, pieces: list[index.Piece]) -> set[SessionId]:
            """Let another process index a session before the first piece of ours is kept."""
            if not raced:
                raced.extend(pieces[:1])
                add(connection, raced)
            return add(connection, pieces)

        monkeypatch.setattr(index, "add", slower)
        covered = await other.catch_up()
        assert covered == type(covered)(SESSIONS, frozenset())
    assert len(raced) == 1
    assert documents(home) == EVERYTHING
