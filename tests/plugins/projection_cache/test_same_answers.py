"""Checkpoints are derived: whatever happens to them, to a log or in between, answers are right."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import apsw
import pytest

from heald import Host
from heald_doctor import Finding, checks
from heald_persistence import session_persistence
from heald_projection import Snapshot
from heald_projection_cache import projection_cache
from heald_query import session_query
from heald_session import APPEND, Header, LogOffset, Session, SessionId, session_store

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]
KEYS = ("title", "sessionStats")
ONE = SessionId("one")


def take_turn(session: Session, turn: int, text: str) -> None:
    session.append("turn/start", {"turn": turn})
    session.append("user/message", {"id": f"m{turn}", "text": text}, surface=APPEND)
    session.append("turn/end", {"turn": turn, "outcome": "completed"})


async def stored(host: Host, *texts: str, id: SessionId = ONE) -> Header:  # noqa: A002
    store = host.scope.require(session_store)
    session = await store.create(cwd="/loom", id=id)
    for turn, text in enumerate(texts, 1):
        take_turn(session, turn, text)
    await store.dispose(session)
    return session.header


async def kept(host: Host, header: Header) -> Snapshot | None:
    cache = host.scope.require(projection_cache)
    return await cache.cached_snapshot(header, LogOffset(0), KEYS)


async def answers(host: Host, id: SessionId = ONE) -> Snapshot:  # noqa: A002
    async with host.scope.require(session_query).observe_session(id, KEYS) as observed:
        return observed.projections


def heard(done: int, total: int | None = None) -> None:
    assert total is None or 0 <= done <= total


async def doctored(host: Host) -> list[Finding]:
    (check,) = [c.value for c in host.scope.collect(checks) if c.value.name == "checkpoints"]
    return list(await check.run(heard))


@pytest.mark.parametrize("harm", ["delete", "garble", "garble behind the header", "foreign"])
async def test_answers_are_the_same_without_the_file(
    open_rows: OpenHost, heald_home: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_rows() as host:
        header = await stored(host, "Count the files", "Sort them")
        before = await answers(host)
        assert await kept(host, header) == before
    (file,) = (heald_home / "cache").glob("*.sqlite")
    data = file.read_bytes()
    match harm:
        case "delete":
            shutil.rmtree(heald_home / "cache")
        case "garble":
            file.write_bytes(b"\0" * 5000)
        case "garble behind the header":
            file.write_bytes(data[:100] + b"\xff" * (len(data) - 100))
        case _:
            file.unlink()
            connection = apsw.Connection(str(file))
            connection.execute("CREATE TABLE states (mine)")
            connection.close()
    harmed = file.read_bytes() if file.exists() else None
    async with open_rows() as host:
        assert await answers(host) == before
        assert await kept(host, header) is None
        await stored(host, "Another", id=SessionId("two"))
        await host.scope.require(session_store).resume(ONE)
    async with open_rows() as host:
        assert await kept(host, header) == before
    if harmed is not None:
        assert file.read_bytes() == harmed
    assert len([r for r in caplog.records if "left as it is" in r.message]) == (harm != "delete")


async def test_a_home_whose_name_is_no_text_has_checkpoints_too(
    heald_home: Path, open_rows: OpenHost, caplog: pytest.LogCaptureFixture
) -> None:
    home = heald_home / os.fsdecode(b"\xff\xfe")
    home.mkdir()
    async with open_rows(home=home) as host:
        header = await stored(host, "Count the files")
    async with open_rows(home=home) as host:
        assert await kept(host, header) == await answers(host)
    assert not caplog.records


def cut_tail(home: Path, lines: int) -> None:
    """Take the last events from a log, as a power cut takes what no sync had reached."""
    tail = home / "sessions" / "one" / "tail.jsonl"
    whole = tail.read_bytes().splitlines(keepends=True)
    tail.write_bytes(b"".join(whole[:-lines]))


async def test_a_checkpoint_of_events_that_were_lost_is_shown_until_the_log_is_read_and_no_longer(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        header = await stored(host, "Count the files", "Sort them")
        ahead = await kept(host, header)
    cut_tail(heald_home, 3)
    async with open_rows() as host:
        assert ahead is not None
        assert await kept(host, header) == ahead
        found = await answers(host)
        assert found.as_of_seq == 2
        assert found.values["sessionStats"]["turns"] == 1
        assert await kept(host, header) is None


async def test_a_checkpoint_of_lost_events_is_no_base_when_others_took_their_place(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        header = await stored(host, "Count the files", "Sort them")
    cut_tail(heald_home, 3)
    async with open_rows(without="projection-cache") as host:
        session = await host.scope.require(session_store).resume(ONE)
        for _ in range(6):
            session.append("turn/start", {"turn": 2})
            session.append("turn/end", {"turn": 2, "outcome": "aborted"})
    async with open_rows(without="projection-cache") as host:
        truth = await answers(host)
    async with open_rows() as host:
        shown = await kept(host, header)
        assert shown is not None
        assert shown.as_of_seq == 5
        assert await answers(host) == truth
        assert await kept(host, header) is None


async def test_the_states_of_a_deleted_session_are_forgotten(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        header = await stored(host, "Count the files")
        other = await stored(host, "Sort them", id=SessionId("two"))
        await host.scope.require(session_persistence).delete(ONE)
        assert await kept(host, header) is None
        assert await kept(host, other) is not None
        await host.scope.require(session_persistence).restore(ONE)
        assert await kept(host, header) is None
        assert (await answers(host)).values["title"] == {"text": "Count the files"}
    (file,) = (heald_home / "cache").glob("*.sqlite")
    connection = apsw.Connection(str(file))
    assert connection.execute("SELECT DISTINCT session_id FROM states").get == "two"
    connection.close()


async def test_what_follows_from_logs_that_go_with_the_process_is_not_kept(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows(without="persistence", last=("persistence-memory",)) as host:
        header = await stored(host, "Count the files")
        assert await kept(host, header) is None
        assert (await answers(host)).values["title"] == {"text": "Count the files"}
    assert not (heald_home / "cache").exists()


@pytest.mark.parametrize("how", ["deleted", "removed by hand"])
async def test_a_session_that_has_a_deleted_ones_id_is_served_none_of_its_states(
    open_rows: OpenHost, heald_home: Path, how: str
) -> None:
    async with open_rows() as host:
        now = host.now()
        host.now = lambda: now
        first = await stored(host, "Count the files")
        if how == "deleted":
            await host.scope.require(session_persistence).delete(ONE)
        else:
            shutil.rmtree(heald_home / "sessions" / "one")
        session = await host.scope.require(session_store).create(cwd="/loom", id=ONE)
        assert session.header.created_at == first.created_at
        take_turn(session, 1, "Sort them")
        assert await kept(host, session.header) is None
        await host.scope.require(session_store).dispose(session)
        found = await kept(host, session.header)
        assert found is not None
        assert found.values["title"] == {"text": "Sort them"}
        assert await kept(host, first) is None


async def test_a_store_that_was_swapped_is_served_none_of_the_other_ones_states(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        await stored(host, "Count the files")
    (heald_home / "sessions").rename(heald_home / "others")
    async with open_rows(without="projection-cache") as host:
        header = await stored(host, "Sort them")
    async with open_rows() as host:
        assert await kept(host, header) is None
        assert (await answers(host)).values["title"] == {"text": "Sort them"}


RUNNING = """
import asyncio, os, signal, sys
from pathlib import Path
from heald import Row, open_host
from heald_session import APPEND, session_store
from heald_sqlite import DerivedDatabase

names = ("session", "persistence", "projection", "projection-cache")

async def main(home, when, which):
    write = DerivedDatabase.write
    count = 0

    async def dying(self, work):
        nonlocal count
        count += 1
        if count == int(which) and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        kept = await write(self, work)
        if count == int(which) and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return kept

    DerivedDatabase.write = dying
    async with open_host(home=Path(home), rows=[Row(id=n, plugin=n) for n in names]) as host:
        session = await host.scope.require(session_store).create(cwd="/loom", id="one")
        for turn in range(1, 10_000):
            session.append("turn/start", {"turn": turn})
            session.append("user/message", {"id": f"m{turn}", "text": "Go"}, surface=APPEND)
            session.append("turn/end", {"turn": turn, "outcome": "completed"})
            print(turn, flush=True)
            if turn % 3 == 0:
                await session.flush()

asyncio.run(main(*sys.argv[1:]))
"""


def run_until_killed(home: Path, when: str, which: int, *, turns: int | None = None) -> None:
    command = [sys.executable, "-c", RUNNING, str(home), when, str(which)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if turns is not None and int(line) >= turns:
                process.kill()
                break
    assert process.returncode == -9


async def is_borne_out(host: Host) -> int:
    """Check that what is kept is of the log, and return how many events it is of."""
    async with await host.scope.require(session_persistence).read(ONE) as log:
        cache = host.scope.require(projection_cache)
        found = await cache.checkpoint(log.header, log.cut, KEYS)
        assert await doctored(host) == []
        if found is None:
            return 0
        assert found.offset <= log.end
        return found.offset


@pytest.mark.parametrize(("when", "which"), [("before", 1), ("before", 3), ("after", 3)])
async def test_a_process_that_is_killed_between_log_and_row_leaves_an_older_row_or_none(
    open_rows: OpenHost, heald_home: Path, when: str, which: int
) -> None:
    run_until_killed(heald_home, when, which)
    async with open_rows() as host:
        offset = await is_borne_out(host)
        assert (offset > 0) == (when == "after" or which > 1)
        with_checkpoint = await answers(host)
    async with open_rows(without="projection-cache") as host:
        assert await answers(host) == with_checkpoint


async def killed_anywhere(open_rows: OpenHost, home: Path, times: int) -> None:
    for number in range(times):
        for place in ("sessions", "cache"):
            shutil.rmtree(home / place, ignore_errors=True)
        run_until_killed(home, "never", 0, turns=20 + number * 7 % 60)
        async with open_rows() as host:
            await is_borne_out(host)


async def test_no_row_is_ahead_of_its_log_wherever_a_process_is_killed(
    open_rows: OpenHost, heald_home: Path
) -> None:
    await killed_anywhere(open_rows, heald_home, 3)


@pytest.mark.crash
@pytest.mark.timeout(600)
async def test_no_row_is_ahead_of_its_log_wherever_a_process_is_killed_a_hundred_times(
    open_rows: OpenHost, heald_home: Path
) -> None:
    await killed_anywhere(open_rows, heald_home, 100)


def multiply(home: Path, count: int) -> None:
    """Store copies of the session `one` under other ids."""
    one = home / "sessions" / "one"
    facts = json.loads((one / "session.json").read_text("utf-8"))
    for number in range(count):
        place = one.with_name(f"copy-{number}")
        place.mkdir()
        shutil.copyfile(one / "tail.jsonl", place / "tail.jsonl")
        facts["header"]["id"] = place.name
        (place / "session.json").write_text(json.dumps(facts), "utf-8")


async def listed_without_bodies(
    open_rows: OpenHost, home: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_rows() as host:
        await stored(host, "Count the files")
    multiply(home, count)
    async with open_rows() as host:
        (check,) = [c.value for c in host.scope.collect(checks) if c.value.name == "checkpoints"]
        assert check.rebuild is not None
        await check.rebuild(heard)

    async def refused(*_: Any, **__: Any) -> Any:
        pytest.fail("a body was read")

    async with open_rows() as host:
        monkeypatch.setattr(type(host.scope.require(session_persistence)), "read", refused)
        listed = await host.scope.require(session_query).list_sessions(keys=["title"])
        assert len(listed) == count + 1
        for record in listed:
            assert record.projections == Snapshot(2, {"title": {"text": "Count the files"}})


async def test_many_sessions_are_listed_with_what_is_kept_and_no_body_is_read(
    open_rows: OpenHost, heald_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await listed_without_bodies(open_rows, heald_home, 100, monkeypatch)


@pytest.mark.crash
@pytest.mark.timeout(600)
async def test_five_thousand_sessions_are_listed_with_what_is_kept_and_no_body_is_read(
    open_rows: OpenHost, heald_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await listed_without_bodies(open_rows, heald_home, 5_000, monkeypatch)
