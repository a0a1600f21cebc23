"""The corpus: whatever happens to sessions, a list is what is live and what is stored."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from heald import HealdError, Host, NoConfig, Plugin, Row, implements, open_host
from heald_persistence import StoredSession, session_persistence
from heald_persistence_memory.memory import MemoryPersistence
from heald_query import SessionQuery, session_query
from heald_session import Header, LogOffset, SessionId, session_store

Install = Callable[..., None]
OpenHost = Callable[..., AbstractAsyncContextManager[Host]]

NAMES = ("session", "persistence", "projection", "projection-cache", "query")
ROWS = [Row(id=name, plugin=name) for name in NAMES]
IDS = st.sampled_from([SessionId(name) for name in ("a", "b", "an odd/id")])
HOSTS = st.sampled_from([0, 1])


class Facts(msgspec.Struct):
    """What a session's `session.json` holds."""

    header: Header


def stored_in(home: Path) -> dict[str, Header | None]:
    """Read every header there is, in the plainest way."""
    found: dict[str, Header | None] = {}
    for place in (home / "sessions").glob("[!.]*"):
        try:
            data = (place / "session.json").read_bytes()
            header = msgspec.json.decode(data, type=Facts).header
            found[header.id] = header
        except (OSError, msgspec.MsgspecError):
            found[place.name] = None
    return found


class Corpora(RuleBasedStateMachine):
    """Two hosts on one home, as in two processes, and somebody who changes files."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.home = Path(self.folder.name)
        self.stack = contextlib.AsyncExitStack()
        self.hosts: list[Host] = []

    @initialize()
    def begin(self) -> None:
        for _ in range(2):
            self.run(self.open())

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.runner.close()
        self.folder.cleanup()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    async def open(self) -> None:
        opened = open_host(home=self.home, rows=ROWS, env={}, strict=True)
        self.hosts.append(await self.stack.enter_async_context(opened))

    def attempt(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do what may be refused: an id is taken, a session is held by the other, or damaged."""
        with contextlib.suppress(HealdError):
            return self.run(work)

    @rule(id=IDS, number=HOSTS, cwd=st.sampled_from(["/a", "/b"]))
    def create(self, id: SessionId, number: int, cwd: str) -> None:  # noqa: A002
        self.attempt(self.hosts[number].scope.require(session_store).create(cwd=cwd, id=id))

    @rule(id=IDS, number=HOSTS)
    def append(self, id: SessionId, number: int) -> None:  # noqa: A002
        async def append() -> None:
            if (session := self.hosts[number].scope.require(session_store).get(id)) is not None:
                session.append("inbox/message", {"id": "m", "text": "more"})
                await session.flush()

        self.attempt(append())

    @rule(id=IDS, number=HOSTS)
    def dispose(self, id: SessionId, number: int) -> None:  # noqa: A002
        async def dispose() -> None:
            store = self.hosts[number].scope.require(session_store)
            if (session := store.get(id)) is not None:
                await store.dispose(session)

        self.attempt(dispose())

    @rule(id=IDS, number=HOSTS)
    def resume(self, id: SessionId, number: int) -> None:  # noqa: A002
        self.attempt(self.hosts[number].scope.require(session_store).resume(id))

    @rule(id=IDS, number=HOSTS)
    def delete(self, id: SessionId, number: int) -> None:  # noqa: A002
        self.attempt(self.hosts[number].scope.require(session_persistence).delete(id))

    @rule(id=IDS, number=HOSTS)
    def restore(self, id: SessionId, number: int) -> None:  # noqa: A002
        self.attempt(self.hosts[number].scope.require(session_persistence).restore(id))

    @rule(old=st.sampled_from([b"/a", b"/b", b"}"]), new=st.sampled_from([b"/a", b"/b", b"{"]))
    def write_over_a_header(self, old: bytes, new: bytes) -> None:
        for file in sorted((self.home / "sessions").glob("*/session.json"))[:1]:
            file.write_bytes(file.read_bytes().replace(old, new))

    @rule()
    def remove_a_directory(self) -> None:
        for place in sorted((self.home / "sessions").glob("[!.]*"))[:1]:
            shutil.rmtree(place)

    @rule()
    def put_something_else_there(self) -> None:
        (self.home / "sessions" / "stranger").mkdir(parents=True, exist_ok=True)

    @rule()
    def delete_the_corpus(self) -> None:
        for file in (self.home / "cache").glob("corpus*"):
            file.unlink()

    @invariant()
    def the_list_is_the_union_of_live_and_stored(self) -> None:
        stored = stored_in(self.home)
        for host in self.hosts:
            live: dict[str, Header] = {
                one.id: one.header for one in host.scope.require(session_store).live()
            }
            both: dict[str, Header | None] = {**stored, **live}
            wanted = {
                id_: (live.get(id_, header), id_ in live, id_ in stored)
                for id_, header in both.items()
            }
            records = self.run(host.scope.require(session_query).list_sessions())
            found = {one.id: (one.header, one.live, one.stored) for one in records}
            assert found == wanted
            assert len(records) == len(wanted)


def test_the_corpus_equals_the_union_of_live_and_stored_after_any_sequence_of_changes() -> None:
    run_state_machine_as_test(
        Corpora,
        settings=settings(
            max_examples=25,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def query_of(host: Host) -> SessionQuery:
    return host.scope.require(session_query)


async def stored(host: Host, name: str, **facts: Any) -> None:
    store = host.scope.require(session_store)
    session = await store.create(**{"cwd": "/loom", "id": SessionId(name), **facts})
    session.append("turn/start", {"turn": 1})
    await store.dispose(session)


async def listed(host: Host) -> dict[str, Header | None]:
    return {record.id: record.header for record in await query_of(host).list_sessions()}


WRITE = """
import asyncio, sys
from pathlib import Path
from heald import Row, open_host
from heald_persistence import session_persistence
from heald_session import SessionId, session_store

async def main():
    rows = [Row(name, name) for name in ("session", "persistence")]
    async with open_host(home=Path(sys.argv[1]), rows=rows, env={}, strict=True) as host:
        session = await host.scope.require(session_store).create(cwd="/b", id=SessionId("new"))
        session.append("turn/start", {"turn": 1})
        await session.flush()
        await host.scope.require(session_persistence).delete(SessionId("old"))

asyncio.run(main())
"""


async def test_what_another_process_makes_and_deletes_is_in_the_next_list(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        await stored(host, "old")
        assert set(await listed(host)) == {"old"}
        words = [sys.executable, "-c", WRITE, str(heald_home)]
        await asyncio.to_thread(subprocess.run, words, check=True)
        assert set(await listed(host)) == {"new"}


def database(home: Path, *, writing: bool = False) -> contextlib.closing[apsw.Connection]:
    flags = apsw.SQLITE_OPEN_READWRITE if writing else apsw.SQLITE_OPEN_READONLY
    file = home / "cache" / "corpus-v1.sqlite"
    return contextlib.closing(apsw.Connection(str(file), flags=flags))


def rows_in(home: Path) -> int:
    with database(home) as file:
        return int(file.execute("SELECT count(*) FROM sessions").get)


async def settled(host: Host, home: Path, count: int) -> None:
    """List until the corpus is written, which it is once a header can be told from a newer one."""
    while True:
        await query_of(host).list_sessions()
        with contextlib.suppress(apsw.Error):
            if rows_in(home) == count:
                return
        await asyncio.sleep(0.01)


async def test_a_later_host_reads_only_the_headers_that_changed(
    open_rows: OpenHost, heald_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heald_persistence import layout, listing

    async with open_rows() as host:
        for number in range(20):
            await stored(host, f"s{number}")
        await settled(host, heald_home, 20)
    read: list[str] = []

    def noting(data: bytes, name: str) -> layout.Facts:
        read.append(name)
        return layout.decode_facts(data, name)

    monkeypatch.setattr(listing, "decode_facts", noting)
    async with open_rows() as host:
        assert len(await listed(host)) == 20
        assert read == []
        await stored(host, "s20")
        assert len(await listed(host)) == 21
        assert read == ["s20"]


async def test_a_corpus_that_is_deleted_or_damaged_gives_the_same_answers(
    open_rows: OpenHost, heald_home: Path
) -> None:
    file = heald_home / "cache" / "corpus-v1.sqlite"
    async with open_rows() as host:
        for number in range(3):
            await stored(host, f"s{number}")
        await settled(host, heald_home, 3)
        before = await listed(host)
    file.unlink()
    async with open_rows() as host:
        assert await listed(host) == before
        await settled(host, heald_home, 3)
    file.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    async with open_rows() as host:
        assert await listed(host) == before
    assert file.read_bytes().endswith(b"x" * 5000)


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_list_opens_no_log_warm_or_with_the_corpus_deleted(
    open_rows: OpenHost, heald_home: Path, monkeypatch: pytest.MonkeyPatch, *, deleted: bool
) -> None:
    async with open_rows() as host:
        for number in range(3):
            await stored(host, f"s{number}")
        await settled(host, heald_home, 3)
    if deleted:
        (heald_home / "cache" / "corpus-v1.sqlite").unlink()
    async with open_rows() as host:
        opened: list[SessionId] = []
        storage = host.scope.require(session_persistence)
        read = type(storage).read

        async def told(self: Any, id: SessionId, **given: Any) -> Any:  # noqa: A002
            opened.append(id)
            return await read(self, id, **given)

        monkeypatch.setattr(type(storage), "read", told)
        keys = ["title", "sessionStats"]
        assert len(await host.scope.require(session_query).list_sessions(keys=keys)) == 3
        assert opened == []
        async with host.scope.require(session_query).observe_session(SessionId("s0")):
            assert opened == ["s0"]  # so that it would have been told


async def test_a_corpus_that_another_process_keeps_busy_delays_no_list(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        await stored(host, "first")
        await settled(host, heald_home, 1)
        with database(heald_home, writing=True) as other:
            other.execute("BEGIN IMMEDIATE")
            await stored(host, "second")
            async with asyncio.timeout(0.9):  # less than anybody waits for the lock
                assert set(await listed(host)) == {"first", "second"}
        await settled(host, heald_home, 2)


async def test_a_row_that_makes_no_sense_is_read_anew(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        await stored(host, "one")
        await settled(host, heald_home, 1)
        before = await listed(host)
    with database(heald_home, writing=True) as file:
        file.execute("UPDATE sessions SET header = '{'")
    async with open_rows() as host:
        assert await listed(host) == before


class Shy(MemoryPersistence):
    """Storage that tells no cut but to who reads a log."""

    @property
    def outlives_process(self) -> bool:
        return True

    async def survey(self, *args: Any, **kwargs: Any) -> Any:
        survey = await super().survey(*args, **kwargs)
        changed = tuple(
            StoredSession(one.name, one.header, stamp=one.stamp) for one in survey.changed
        )
        return type(survey)(changed, survey.gone)


async def test_an_exact_cut_is_kept_once_a_body_read_has_shown_it(
    open_rows: OpenHost, install: Install
) -> None:
    kept = Shy()

    class ShyPlugin(Plugin[NoConfig]):
        @implements(session_persistence)
        def storage(self) -> Shy:
            return kept

    install(shy=ShyPlugin)
    async with open_rows(without=("persistence",), last=("shy",)) as host:
        store = host.scope.require(session_store)
        source = await store.create(cwd=None, id=SessionId("source"))
        source.append("turn/start", {"turn": 1})
        source.append("turn/end", {"turn": 1, "outcome": "completed"})
        await source.flush()
        child = await store.fork(source.id, id=SessionId("child"))
        child.append("turn/start", {"turn": 2})
        child.append("turn/end", {"turn": 2, "outcome": "completed"})
        await store.dispose(child)

        async def turns() -> Any:
            records = await query_of(host).list_sessions(keys=["sessionStats"])
            (values,) = (one.projections for one in records if one.id == "child")
            return None if values is None else values.values["sessionStats"]["turns"]

        assert await turns() is None
        async with query_of(host).observe_session(child.id) as observed:
            assert observed.inherited_event_count == LogOffset(2)
        assert await turns() == 2


async def test_the_check_finds_a_corpus_that_lies_and_rebuilding_mends_it(
    open_rows: OpenHost, heald_home: Path
) -> None:
    from heald_doctor import checks

    async with open_rows(last=("doctor",)) as host:
        await stored(host, "one")
        await stored(host, "two")
        await settled(host, heald_home, 2)
    with database(heald_home, writing=True) as file:
        file.execute("""UPDATE sessions SET header = replace(header, '/loom', '/lies')
                        WHERE name = 'one'""")
        file.execute("UPDATE sessions SET cut = 5 WHERE name = 'two'")
    async with open_rows(last=("doctor",)) as host:
        (check,) = (one.value for one in host.scope.collect(checks) if one.value.name == "corpus")
        told: list[tuple[int, int | None]] = []

        def progress(done: int, total: int | None = None) -> None:
            told.append((done, total))

        findings = await check.run(progress)
        assert [one.message.split(":")[0] for one in findings] == ["session one", "session two"]
        assert told[-1] == (2, 2)
        assert check.rebuild is not None
        await check.rebuild(progress)
        assert await check.run(progress) == []
        assert rows_in(heald_home) == 2
        (header,) = (one for id_, one in (await listed(host)).items() if id_ == "one")
        assert header is not None
        assert header.cwd == "/loom"
