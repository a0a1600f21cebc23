"""Committing events: what is checked, who is asked, who is told."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from heald import Host, Row
from heald_session import (
    APPEND,
    AppendRefused,
    AssistantMessage,
    EventInvalid,
    EventTypeUnknown,
    NewEvent,
    Seq,
    Session,
    SessionClosed,
    Surface,
    ToolCall,
    UserMessage,
    after,
    before,
    session_store,
)

OpenHost = Callable[..., Any]
PluginOf = Callable[[Host, str], Any]
WITNESS = Row("witness", "acme-witness")


@pytest.fixture
async def session(host: Host) -> Session:
    return await host.scope.require(session_store).create(cwd="/loom")


def test_a_seq_names_an_event_and_offsets_are_the_gaps_beside_it() -> None:
    assert (before(Seq(3)), after(Seq(3))) == (3, 4)


async def test_events_are_numbered_from_zero_and_time_never_runs_backwards(
    host: Host, session: Session
) -> None:
    times = iter([500, 400, 700])
    host.now = lambda: next(times)
    events = [session.append("turn/start", {"turn": n}) for n in (1, 2, 3)]
    assert [(event.seq, event.time) for event in events] == [(0, 500), (1, 500), (2, 700)]
    assert session.end == 3
    assert session.flushed == 0
    await session.flush()
    assert session.flushed == 3
    assert list(session.hot()) == events
    assert [event async for event in session.read()] == events


async def test_a_reader_gets_copies_that_are_its_own_to_change(session: Session) -> None:
    data = {"turn": 1}
    event = session.append("turn/start", data)
    data["turn"] = 2
    event.data["turn"] = 3
    assert event.data == {"turn": 1}
    assert session.hot()[0].data == {"turn": 1}


async def test_hot_begins_where_asked_and_refuses_what_is_before_memory(session: Session) -> None:
    for turn in (1, 2, 3):
        session.append("turn/start", {"turn": turn})
    assert [event.seq for event in session.hot(after(Seq(0)))] == [1, 2]
    assert session.hot(session.end) == ()
    with pytest.raises(IndexError):
        session.hot(before(Seq(-1)))
    assert [e.seq async for e in session.read(after(Seq(0)), after(Seq(1)))] == [1]


async def test_the_version_of_a_declared_type_and_its_requirement_are_stored(
    session: Session,
) -> None:
    note = session.append("acme/note", {"text": "hello"})
    vital = session.append("acme/vital", {"text": "hello"})
    assert (note.v, note.required) == (3, False)
    assert (vital.v, vital.required) == (1, True)


async def test_a_former_name_is_written_as_the_present_one(session: Session) -> None:
    assert session.append("acme/memo", {"text": "hello"}).type == "acme/note"


async def test_an_undeclared_type_is_refused_with_the_nearest(session: Session) -> None:
    with pytest.raises(EventTypeUnknown, match="turn/start"):
        session.append("turn/strat", {"turn": 1})
    assert session.end == 0


@pytest.mark.parametrize(
    "data", [{}, {"text": 1}, {"text": "a", "stars": "3"}, {"text": "a", "star": 3}, [], None]
)
async def test_data_that_fails_its_schema_is_refused_naming_who_declared_it(
    session: Session, data: object
) -> None:
    with pytest.raises(EventInvalid, match="declared by plugin acme-notes") as refused:
        session.append("acme/note", data)
    assert (refused.value.code, refused.value.plugin) == ("EVENT_INVALID", "acme-notes")
    assert session.end == 0


async def test_a_struct_stands_for_its_fields(session: Session) -> None:
    call = ToolCall("c", "read", {"path": "a"})
    event = session.append("assistant/message", AssistantMessage("", [call]), surface=APPEND)
    assert event.data == {
        "text": "",
        "tool_calls": [{"id": "c", "name": "read", "arguments": {"path": "a"}}],
    }
    assert event.data_as(AssistantMessage).tool_calls == [call]


@pytest.mark.parametrize(
    "surface",
    [
        Surface("replace"),
        Surface("replace", Seq(0), Seq(9)),
        Surface("replace", Seq(2), Seq(0)),
        Surface("replace", Seq(1), Seq(1)),
        Surface("append", Seq(0), Seq(0)),
    ],
)
async def test_a_surface_that_names_no_range_of_the_surface_is_refused(
    session: Session, surface: Surface
) -> None:
    session.append("user/message", UserMessage("a", "a"), surface=APPEND)
    session.append("turn/start", {"turn": 1})
    session.append("user/message", UserMessage("b", "b"), surface=APPEND)
    with pytest.raises(EventInvalid):
        session.append("user/message", UserMessage("c", "c"), surface=surface)
    assert session.end == 3


async def test_sources_must_be_earlier_events(session: Session) -> None:
    session.append("turn/start", {"turn": 1})
    assert session.append("acme/note", {"text": ""}, sources=(Seq(0),)).sources == (0,)
    with pytest.raises(EventInvalid, match="sources"):
        session.append("acme/note", {"text": ""}, sources=(Seq(2),))
    assert session.end == 2


async def test_the_first_guard_to_raise_refuses_and_is_named(
    open_host: OpenHost, plugin_of: PluginOf
) -> None:
    guard = Row("sundays", "acme-guard", {"refuses": "turn/start"})
    async with open_host(WITNESS, guard) as host:
        session = await host.scope.require(session_store).create(cwd=None)
        with pytest.raises(AppendRefused, match="no turn/start on a Sunday") as refused:
            session.append("turn/start", {"turn": 1})
        assert refused.value.plugin == "acme-guard"
        assert isinstance(refused.value.__cause__, PermissionError)
        assert session.end == 0
        event = session.append("acme/note", {"text": "as written"})
        assert event.data == {"text": "as written"}
        heard = [what for what, _, _ in plugin_of(host, "witness").heard]
        assert heard == ["prepared", "opened", "acme/note"]


async def test_an_observer_hears_of_an_event_after_it_was_committed(
    open_host: OpenHost, plugin_of: PluginOf
) -> None:
    async with open_host(WITNESS) as host:
        session = await host.scope.require(session_store).create(cwd=None)
        session.append("turn/start", {"turn": 1})
        assert plugin_of(host, "witness").heard[-1] == ("turn/start", session.id, 1)


async def test_an_append_from_inside_an_observer_is_refused(
    open_host: OpenHost, plugin_of: PluginOf, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_host(Row("witness", "acme-witness", {"append_back": True})) as host:
        session = await host.scope.require(session_store).create(cwd=None)
        session.append("turn/start", {"turn": 1})
        assert session.end == 1
        (error,) = plugin_of(host, "witness").errors
        assert error.code == "APPEND_REENTRANT"
        assert "acme-witness" in caplog.text
        assert session.append("turn/start", {"turn": 2}).seq == 1


async def test_another_session_may_be_appended_to_from_inside_an_observer(
    open_host: OpenHost, plugin_of: PluginOf
) -> None:
    async with open_host(WITNESS) as host:
        store = host.scope.require(session_store)
        one, two = await store.create(cwd=None), await store.create(cwd=None)
        witness = plugin_of(host, "witness")
        witness.copies_to = two
        one.append("acme/note", {"text": "a"})
        assert (one.end, two.end, witness.errors) == (1, 1, [])


async def test_an_append_from_inside_a_guard_is_refused(open_host: OpenHost) -> None:
    async with open_host(Row("guard", "acme-guard", {"appends": True})) as host:
        session = await host.scope.require(session_store).create(cwd=None)
        with pytest.raises(AppendRefused, match="from inside a guard or an observer"):
            session.append("acme/note", {"text": "a"})
        assert session.end == 0


async def test_of_several_guards_only_the_first_that_refuses_is_asked_and_named(
    open_host: OpenHost, plugin_of: PluginOf
) -> None:
    rows = [Row(name, "acme-guard", {"refuses": "turn/start"}) for name in ("one", "two")]
    async with open_host(Row("zero", "acme-guard"), *rows) as host:
        session = await host.scope.require(session_store).create(cwd=None)
        with pytest.raises(AppendRefused):
            session.append("turn/start", {"turn": 1})
        asked = [plugin_of(host, name).asked for name in ("zero", "one", "two")]
        assert asked == [1, 1, 0]


async def test_a_guard_that_names_types_is_asked_about_those_under_each_of_their_names(
    open_host: OpenHost, plugin_of: PluginOf
) -> None:
    config = {"types": ["acme/note"], "refuses": "acme/note"}
    async with open_host(Row("notes", "acme-guard", config)) as host:
        session = await host.scope.require(session_store).create(cwd=None)

        session.append("turn/start", {"turn": 1})
        assert plugin_of(host, "notes").asked == 0

        for name in ("acme/note", "acme/memo"):
            with pytest.raises(AppendRefused):
                session.append(name, {"text": "a"})
        assert plugin_of(host, "notes").asked == 2


async def test_guards_are_asked_about_first_events_and_not_about_what_a_log_has(
    open_host: OpenHost, plugin_of: PluginOf
) -> None:
    async with open_host(Row("guard", "acme-guard")) as host:
        store = host.scope.require(session_store)
        first = [NewEvent("acme/note", {"text": "a"})]
        session = await store.create(cwd=None, first=first)
        assert plugin_of(host, "guard").asked == 1

        fork = await store.fork(session.id)
        await store.dispose(session)
        again = await store.resume(session.id)

        assert (fork.end, again.end) == (1, 1)
        assert plugin_of(host, "guard").asked == 1


async def test_an_observer_that_raises_stops_neither_the_event_nor_the_others(
    open_host: OpenHost, plugin_of: PluginOf, caplog: pytest.LogCaptureFixture
) -> None:
    bad = Row("bad", "acme-witness", {"raises": True})
    async with open_host(bad, WITNESS) as host:
        session = await host.scope.require(session_store).create(cwd=None)
        event = session.append("turn/start", {"turn": 1})
        assert session.hot() == (event,)
        assert plugin_of(host, "witness").heard[-1][0] == "turn/start"
    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert "row bad (plugin acme-witness)" in record.getMessage()


async def test_a_closed_session_takes_nothing(host: Host, session: Session) -> None:
    session.append("turn/start", {"turn": 1})
    await host.scope.require(session_store).dispose(session)
    assert session.closed
    with pytest.raises(SessionClosed):
        session.append("turn/start", {"turn": 2})
    assert session.end == 1
