"""The check `checkpoints`: what a log does not bear out is found, and everything is made anew."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import apsw
import pytest

from heald import Host
from heald_doctor import Check, checks
from heald_persistence import session_persistence
from heald_projection import Snapshot
from heald_projection_cache import projection_cache
from heald_session import APPEND, Header, LogOffset, Session, SessionId, session_store
from heald_sqlite import ResetFailed

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


def heard(done: int, total: int | None = None) -> None:
    assert total is None or 0 <= done <= total


def check_of(host: Host) -> Check:
    (check,) = [c.value for c in host.scope.collect(checks) if c.value.name == "checkpoints"]
    return check


async def found(host: Host) -> list[str]:
    steps: list[tuple[int, int | None]] = []
    findings = await check_of(host).run(lambda done, total=None: steps.append((done, total)))
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1]
    assert {finding.severity for finding in findings} <= {"warning"}
    return [finding.message for finding in findings]


async def rebuild(host: Host) -> None:
    make = check_of(host).rebuild
    assert make is not None
    await make(heard)


def take_turn(session: Session, turn: int = 1) -> None:
    session.append("turn/start", {"turn": turn})
    session.append("user/message", {"id": f"m{turn}", "text": "Count the files"}, surface=APPEND)
    session.append("turn/end", {"turn": turn, "outcome": "completed"})


async def live(host: Host, name: str = "one") -> Session:
    session = await host.scope.require(session_store).create(cwd="/loom", id=SessionId(name))
    take_turn(session)
    return session


async def stored(host: Host, name: str = "one") -> Header:
    session = await live(host, name)
    await host.scope.require(session_store).dispose(session)
    return session.header


async def kept(host: Host, header: Header) -> Snapshot | None:
    cache = host.scope.require(projection_cache)
    return await cache.cached_snapshot(header, LogOffset(0), ["title"])


def change(home: Path, statement: str) -> None:
    (file,) = (home / "cache").glob("*.sqlite")
    connection = apsw.Connection(str(file))
    connection.execute(statement)
    connection.close()


async def test_what_logs_bear_out_is_no_finding(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        assert await found(host) == []
        await stored(host)
        await live(host, "two")
        assert await found(host) == []


async def test_to_be_behind_the_log_is_no_finding(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        await stored(host)
    async with open_rows(without="projection-cache") as host:
        take_turn(await host.scope.require(session_store).resume(SessionId("one")), 2)
    async with open_rows() as host:
        assert await found(host) == []


async def test_to_be_of_another_version_of_a_unit_is_no_finding(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        await stored(host)
        change(heald_home, "UPDATE states SET state_version = 99, value = '7'")
        assert await found(host) == []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE states SET value = '{\"text\":\"x\"}' WHERE key = 'title'", "has another title"),
        ("UPDATE states SET value = '{' WHERE key = 'title'", "has another title"),
        ("UPDATE sessions SET witness = 'x'", "is of another event before offset 3"),
        ('UPDATE sessions SET "offset" = 2', "is of another event before offset 2"),
        ('UPDATE sessions SET "offset" = 9', "is of 9 events, and the log has 3"),
        ("UPDATE sessions SET identity = 'x'", "is of another session"),
        ("UPDATE sessions SET session_id = 'two'", "session two is of a session that is not"),
    ],
)
async def test_what_a_log_does_not_bear_out_is_found_and_made_good(
    open_rows: OpenHost, heald_home: Path, statement: str, message: str
) -> None:
    async with open_rows() as host:
        header = await stored(host)
        before = await kept(host, header)
        change(heald_home, statement)
        (finding,) = await found(host)
        assert message in finding
        await rebuild(host)
        assert await found(host) == []
        assert await kept(host, header) == before


async def test_what_is_wrong_with_a_log_is_not_a_finding_of_this_check(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        await stored(host)
        await stored(host, "two")
        tail = heald_home / "sessions" / "one" / "tail.jsonl"
        tail.write_bytes(b"rot" + tail.read_bytes())
        (heald_home / "sessions" / "two" / "session.json").write_text("rot")
        assert await found(host) == []
        await rebuild(host)
        assert await found(host) == []


async def test_everything_stored_has_a_checkpoint_once_they_are_made_anew(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        one, two = await stored(host), await stored(host, "two")
        store = host.scope.require(session_store)
        child = await store.fork_stored(one.id, id=SessionId("three"))
        before = await kept(host, one)
    shutil.rmtree(heald_home / "cache")
    logs = {file: file.read_bytes() for file in (heald_home / "sessions").glob("*/*.json*")}
    async with open_rows() as host:
        await rebuild(host)
        assert await kept(host, one) == await kept(host, two) == before
        cache = host.scope.require(projection_cache)
        assert await cache.cached_snapshot(child, LogOffset(3), ["title"]) == before
        assert await found(host) == []
    assert {file: file.read_bytes() for file in logs} == logs


async def test_a_session_that_somebody_writes_is_left_to_him(open_rows: OpenHost) -> None:
    async with open_rows() as host, open_rows() as other:
        mine, his = await live(host), await live(other, "two")
        for at, session in ((host, mine), (other, his)):
            await at.scope.require(projection_cache).save(session)
        await rebuild(host)
        assert await kept(host, mine.header) is not None
        assert await kept(host, his.header) is None
        await other.scope.require(session_store).dispose(his)
        assert await kept(host, his.header) is not None


async def test_what_cannot_be_forgotten_now_is_not_made_anew(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        header = await stored(host)
        (file,) = (heald_home / "cache").glob("*.sqlite")
        other = apsw.Connection(str(file))
        other.execute("BEGIN IMMEDIATE")
        try:
            with pytest.raises(ResetFailed):
                await rebuild(host)
        finally:
            other.close()
        assert await kept(host, header) is not None


async def test_without_storage_there_is_nothing_to_compare_with(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        await stored(host)
    async with open_rows(without="persistence") as host:
        assert host.scope.find(session_persistence) is None
        assert await found(host) == []
        await rebuild(host)
