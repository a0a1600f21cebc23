"""Making, resuming and disposing of sessions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heald import Composition, Host, Row
from heald.testing import HostFactory
from heald_persistence import LogChanged, SessionBusy, SessionNotSaved, disk, session_persistence
from heald_session import (
    HeaderInvalid,
    LogNeedsPlugin,
    NewEvent,
    SessionId,
    SessionIdInvalid,
    SessionIdTaken,
    SessionNotFound,
    session_store,
)
from heald_session.testing import append_unchecked

OpenHost = Callable[..., Any]
PluginOf = Callable[[Host, str], Any]
ONE = SessionId("one")
WITNESS = Row("witness", "acme-witness")
NOTE = NewEvent("acme/note", {"text": "first"})


def no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")


async def test_a_made_up_id_is_sixteen_hexadecimal_digits(host: Host) -> None:
    session = await host.scope.require(session_store).create(cwd=None)
    assert len(session.id) == 16
    assert set(session.id) <= set("0123456789abcdef")


async def test_the_header_has_the_facts_of_creation(host: Host) -> None:
    host.now = lambda: 12345
    store = host.scope.require(session_store)
    one = await store.create(
        cwd="/loom",
        parent_session=SessionId("p"),
        delegation_depth=1,
        origin="subagent",
        agent_preset="standard",
    )
    two = await store.create(cwd=None)
    assert (one.header.created_at, one.header.cwd, one.header.origin) == (
        12345,
        "/loom",
        "subagent",
    )
    assert (one.header.parent_session, one.header.delegation_depth) == ("p", 1)
    assert (one.header.agent_preset, one.header.is_seeded, one.cut) == ("standard", False, 0)
    assert one.header.log_id != two.header.log_id
    assert store.live() == (one, two)


@pytest.mark.parametrize("bad", ["", "x" * 301, "a\ud800", 7], ids=ascii)
async def test_what_cannot_be_an_id_is_refused(host: Host, bad: Any) -> None:
    store = host.scope.require(session_store)
    with pytest.raises(SessionIdInvalid) as refused:
        await store.create(cwd=None, id=bad)
    assert refused.value.code == "SESSION_ID_INVALID"
    assert "see `heald sessions list`" in str(refused.value)
    assert "leave it out where a session is made" in str(refused.value)
    assert len(str(refused.value)) < 250
    with pytest.raises(SessionIdInvalid):
        await store.resume(bad)


async def test_an_id_is_taken_while_its_session_lives_and_once_it_is_stored(host: Host) -> None:
    store = host.scope.require(session_store)
    session = await store.create(cwd=None, id=ONE, first=[NOTE])
    with pytest.raises(SessionIdTaken):
        await store.create(cwd=None, id=ONE)
    await store.dispose(session)
    with pytest.raises(SessionIdTaken):
        await store.create(cwd=None, id=ONE)


async def test_of_two_that_make_one_id_at_once_one_is_refused(host: Host) -> None:
    store = host.scope.require(session_store)
    made = await asyncio.gather(
        *(store.create(cwd=None, id=ONE, first=[NOTE]) for _ in range(2)), return_exceptions=True
    )
    assert [type(one).__name__ for one in made] == ["LiveSession", "SessionIdTaken"]


async def test_a_session_that_logged_nothing_leaves_nothing_and_its_id_is_free(host: Host) -> None:
    store = host.scope.require(session_store)
    session = await store.create(cwd=None, id=ONE)
    await session.flush()
    await store.dispose(session)
    assert store.get(ONE) is None
    assert not (host.home / "sessions").exists()
    with pytest.raises(SessionNotFound):
        await store.resume(ONE)
    again = await store.create(cwd=None, id=ONE)
    assert again.header.log_id != session.header.log_id


async def test_first_events_are_durable_before_anyone_sees_the_session(
    open_host: OpenHost, plugin_of: PluginOf
) -> None:
    async with open_host(WITNESS) as host:
        session = await host.scope.require(session_store).create(cwd=None, id=ONE, first=[NOTE])
        assert session.flushed == session.end == 1
        assert plugin_of(host, "witness").heard == [("prepared", "one", 1), ("opened", "one", 1)]


async def test_first_events_that_are_refused_leave_no_session(
    open_host: OpenHost, plugin_of: PluginOf
) -> None:
    async with open_host(WITNESS) as host:
        store = host.scope.require(session_store)
        for bad in (NewEvent("nobody/knows", {}), NewEvent("acme/note", {"text": 1})):
            with pytest.raises((LookupError, ValueError)):
                await store.create(cwd=None, id=ONE, first=[NOTE, bad])
        assert store.live() == ()
        assert plugin_of(host, "witness").heard == []
        await store.create(cwd=None, id=ONE)


async def test_first_events_that_cannot_be_saved_leave_no_session(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = host.scope.require(session_store)
    with monkeypatch.context() as patch:
        patch.setattr(disk, "write", no_room)
        with pytest.raises(SessionNotSaved, match="No space left"):
            await store.create(cwd=None, id=ONE, first=[NOTE])
    assert store.get(ONE) is None
    assert list((host.home / "sessions").iterdir()) == []
    await store.create(cwd=None, id=ONE, first=[NOTE])


async def test_a_live_session_is_the_one_that_a_resume_returns(host: Host) -> None:
    store = host.scope.require(session_store)
    session = await store.create(cwd=None, id=ONE)
    assert await store.resume(ONE) is session
    assert store.get(ONE) is session


async def test_those_who_resume_one_session_at_once_get_the_same(open_host: OpenHost) -> None:
    async with open_host() as host:
        await host.scope.require(session_store).create(cwd="/loom", id=ONE, first=[NOTE])
    async with open_host(WITNESS) as host:
        store = host.scope.require(session_store)
        given_up = asyncio.create_task(store.resume(ONE))
        rest = asyncio.gather(*(store.resume(ONE) for _ in range(5)))
        await asyncio.sleep(0)
        given_up.cancel()
        sessions = await rest
        assert len({id(session) for session in sessions}) == 1
        assert sessions[0].header.cwd == "/loom"
        assert sessions[0].flushed == 1


async def test_a_resume_waits_for_a_disposal_that_is_under_way(host: Host) -> None:
    store = host.scope.require(session_store)
    session = await store.create(cwd=None, id=ONE, first=[NOTE])
    leaving = asyncio.create_task(store.dispose(session))
    await asyncio.sleep(0)
    resumed = await store.resume(ONE)
    await leaving
    assert resumed is not session
    assert not resumed.closed
    assert store.live() == (resumed,)


async def test_an_unknown_session_is_not_found(open_host: OpenHost) -> None:
    for stored in (True, False):
        async with open_host(stored=stored) as host:
            with pytest.raises(SessionNotFound) as missing:
                await host.scope.require(session_store).resume(SessionId("nobody"))
            assert missing.value.code == "SESSION_NOT_FOUND"


async def test_a_session_that_another_host_writes_is_busy(open_host: OpenHost) -> None:
    async with open_host() as one, open_host() as two:
        session = await one.scope.require(session_store).create(cwd=None, id=ONE, first=[NOTE])
        with pytest.raises(SessionBusy):
            await two.scope.require(session_store).resume(ONE)
        await one.scope.require(session_store).dispose(session)
        assert (await two.scope.require(session_store).resume(ONE)).end == 1


async def test_observers_hear_of_a_session_before_during_and_after_its_life(
    open_host: OpenHost, plugin_of: PluginOf
) -> None:
    async with open_host(WITNESS) as host:
        store = host.scope.require(session_store)
        session = await store.create(cwd=None, id=ONE)
        session.append("acme/note", {"text": "a"})
        await asyncio.gather(*(store.dispose(session) for _ in range(3)))
        await store.dispose(session)
        await store.resume(ONE)
        assert [what for what, _, _ in plugin_of(host, "witness").heard] == [
            "prepared",
            "opened",
            "acme/note",
            "closed at 1",
            "prepared",
            "opened",
        ]


async def test_the_rows_of_a_sessions_own_composition_hear_it_and_no_other(
    open_host: OpenHost,
) -> None:
    async with open_host() as host:
        store = host.scope.require(session_store)
        composition: Composition = await host.mount("preset", [WITNESS])
        inside = await store.create(cwd=None, composition=composition)
        outside = await store.create(cwd=None)
        assert inside.scope.composition is composition
        assert outside.scope.composition is host.composition
        inside.append("acme/note", {"text": "a"})
        outside.append("acme/note", {"text": "b"})
        witness: Any = composition.mounted[0].plugin
        assert {name for _, name, _ in witness.heard} == {inside.id}
        await store.dispose(inside)
        await composition.close()


async def test_every_session_is_saved_and_let_go_when_the_host_stops(open_host: OpenHost) -> None:
    async with open_host() as host:
        store = host.scope.require(session_store)
        sessions = [await store.create(cwd=None) for _ in range(5)]
        for session in sessions:
            session.append("acme/note", {"text": "a"})
    assert all(session.closed for session in sessions)
    async with open_host() as host:
        store = host.scope.require(session_store)
        assert [(await store.resume(session.id)).end for session in sessions] == [1] * 5


async def test_a_session_that_cannot_be_saved_stays_until_it_can_be(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = host.scope.require(session_store)
    session = await store.create(cwd=None, id=ONE, first=[NOTE])
    with monkeypatch.context() as patch:
        patch.setattr(disk, "write", no_room)
        session.append("acme/note", {"text": "a"})
        with pytest.raises(SessionNotSaved):
            await store.dispose(session)
        assert session.not_saved == "No space left on device"
    assert store.get(ONE) is session
    assert not session.closed
    session.append("acme/note", {"text": "b"})
    await store.dispose(session)
    assert (await store.resume(ONE)).end == 3


async def test_a_host_that_stops_while_the_disk_is_full_says_what_is_lost(
    open_host: OpenHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_host() as host:
        session = await host.scope.require(session_store).create(cwd=None, id=ONE, first=[NOTE])
        monkeypatch.setattr(disk, "write", no_room)
        session.append("acme/note", {"text": "a"})
    assert session.closed
    assert "1 events of session 'one' are lost" in caplog.text
    monkeypatch.undo()


async def test_a_session_whose_log_was_changed_by_others_can_be_let_go_and_resumed(
    host: Host,
) -> None:
    store = host.scope.require(session_store)
    session = await store.create(cwd=None, id=ONE, first=[NOTE])
    tail = host.home / "sessions" / "one" / "tail.jsonl"
    copy(tail)
    with pytest.raises(LogChanged):
        session.append("acme/note", {"text": "a"})
    assert session.end == 1
    with pytest.raises(LogChanged):
        await store.dispose(session)
    assert store.get(ONE) is None
    assert (await store.resume(ONE)).end == 1


def copy(path: Path) -> None:
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)


async def test_without_storage_sessions_live_in_memory(open_host: OpenHost) -> None:
    async with open_host(stored=False) as host:
        store = host.scope.require(session_store)
        assert host.scope.find(session_persistence) is None
        session = await store.create(cwd=None, id=ONE, first=[NOTE])
        session.append("acme/note", {"text": "a"})
        assert (session.flushed, session.end, session.not_saved) == (1, 2, None)
        await session.flush()
        assert session.flushed == 2
        fork = await store.fork(ONE)
        assert fork.cut == 2
        await store.dispose(session)
        assert store.live() == (fork,)
        with pytest.raises(SessionNotFound):
            await store.fork(ONE)
    assert not (host.home / "sessions").exists()


async def test_events_of_an_uninstalled_plugin_are_opaque_and_return_to_life(
    open_host: OpenHost,
) -> None:
    async with open_host() as host:
        session = await host.scope.require(session_store).create(cwd=None, id=ONE)
        session.append("turn/start", {"turn": 1})
        session.append("acme/note", {"text": "é", "stars": 2})
        session.append("turn/end", {"turn": 1, "outcome": "completed"})
        before = list(session.hot())
    tail = host.home / "sessions" / "one" / "tail.jsonl"
    stored = tail.read_bytes()
    async with open_host(with_acme=False) as host:
        store = host.scope.require(session_store)
        session = await store.resume(ONE)
        assert list(session.hot()) == before
        assert session.hot()[1].data == {"text": "é", "stars": 2}
        with pytest.raises(LookupError):
            session.append("acme/note", {"text": "no"})
        fork = await store.fork(ONE)
        assert list(fork.hot()) == before
    assert tail.read_bytes() == stored
    async with open_host() as host:
        session = await host.scope.require(session_store).resume(fork.id)
        assert session.append("acme/note", {"text": "back"}).seq == 3


async def test_a_log_with_events_that_must_be_understood_needs_their_plugin(
    open_host: OpenHost,
) -> None:
    async with open_host() as host:
        session = await host.scope.require(session_store).create(cwd=None, id=ONE)
        session.append("acme/vital", {"text": "a"})
    async with open_host(with_acme=False) as host:
        store = host.scope.require(session_store)
        for _ in range(2):
            with pytest.raises(LogNeedsPlugin, match="acme/vital") as refused:
                await store.resume(ONE)
            assert refused.value.types == ("acme/vital",)
        assert store.live() == ()
    async with open_host() as host:
        assert (await host.scope.require(session_store).resume(ONE)).end == 1


async def test_a_stored_event_that_no_longer_fits_loads_as_it_is(open_host: OpenHost) -> None:
    async with open_host() as host:
        session = await host.scope.require(session_store).create(cwd=None, id=ONE)
        append_unchecked(session, "acme/note", {"words": ["a"]}, v=9)
    async with open_host() as host:
        (event,) = (await host.scope.require(session_store).resume(ONE)).hot()
        assert (event.data, event.v) == ({"words": ["a"]}, 9)


@pytest.mark.parametrize("events", [1, 5_000])
async def test_listing_resuming_and_leaving_a_balanced_log_change_no_byte(
    open_host: OpenHost, caplog: pytest.LogCaptureFixture, events: int
) -> None:
    async with open_host() as host:
        session = await host.scope.require(session_store).create(cwd=None, id=ONE)
        for n in range(events):
            session.append("acme/note", {"text": f"{n}" * 10})
    before = files_under(host.home / "sessions")
    async with open_host() as host:
        storage = host.scope.require(session_persistence)
        assert [stored.name for stored in await storage.list()] == ["one"]
        session = await host.scope.require(session_store).resume(ONE)
        assert len([event async for event in session.read()]) == events
    assert files_under(host.home / "sessions") == before
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


def files_under(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file but the lock, whose text names its last owner."""
    files = (path for path in root.rglob("*") if path.is_file() and path.name != "lock")
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files
    }


async def test_time_never_runs_backwards_over_a_resume_or_a_fork(host: Host) -> None:
    store = host.scope.require(session_store)
    host.now = lambda: 5_000
    session = await store.create(cwd=None, id=ONE, first=[NOTE])
    host.now = lambda: 3_000
    assert (await store.fork(ONE, first=[NOTE])).hot()[-1].time == 5_000
    await store.dispose(session)
    resumed = await store.resume(ONE)
    assert resumed.append("acme/note", {"text": "later"}).time == 5_000
    host.now = lambda: 6_000
    assert resumed.append("acme/note", {"text": "later"}).time == 6_000


async def test_a_session_has_the_id_that_was_asked_for_from_its_first_event_on(
    open_host: OpenHost, plugin_of: PluginOf
) -> None:
    async with open_host(WITNESS) as host:
        await host.scope.require(session_store).create(cwd=None, id=ONE, first=[NOTE])
        assert {id_ for _, id_, _ in plugin_of(host, "witness").heard} == {"one"}
    async with open_host() as host:
        (stored,) = await host.scope.require(session_persistence).list()
        assert stored.header is not None
        assert (stored.name, stored.header.id) == ("one", "one")


@pytest.mark.parametrize("field", ["cwd", "agent_preset"])
async def test_facts_that_no_file_can_hold_are_refused_before_anything_is_made(
    heald_host: HostFactory, field: str
) -> None:
    async with heald_host(rows=[Row("session", "session")]) as host:
        store = host.scope.require(session_store)
        facts: dict[str, Any] = {"cwd": None, field: "/loom/\udcff"}
        with pytest.raises(HeaderInvalid, match=f"its {field} has a lone surrogate"):
            await store.create(**facts)
        assert store.live() == ()
