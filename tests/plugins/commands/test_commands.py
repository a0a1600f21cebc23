"""Slash commands: found in the session's composition, run, and logged whatever comes of them."""

from __future__ import annotations

import asyncio

import pytest

from heald import HealdError, Host, Row
from heald_commands import (
    CommandDirectory,
    CommandFailed,
    CommandRan,
    CommandUnknown,
    command_directory,
)
from heald_session import Session, SessionStore, session_store


@pytest.fixture
def directory(host: Host) -> CommandDirectory:
    """Return the host's command directory."""
    return host.scope.require(command_directory)


@pytest.fixture
def store(host: Host) -> SessionStore:
    """Return the host's sessions."""
    return host.scope.require(session_store)


@pytest.fixture
async def session(store: SessionStore) -> Session:
    """Return a live session on the host's rows."""
    return await store.create(cwd=None)


def ran(session: Session) -> list[CommandRan]:
    """Return what the log says was run."""
    return [e.data_as(CommandRan) for e in session.hot() if e.type == "command/ran"]


async def test_the_catalogue_is_sorted_and_says_whose_each_command_is(
    directory: CommandDirectory, session: Session
) -> None:
    catalogue = await directory.catalogue(session)

    names = [found.value.name for found in catalogue]
    assert names == ["echo", "fail", "leave", "number", "refuse", "rename", "wait"]
    assert {c.origin.row for c in catalogue if c.value.name != "rename"} == {"letters"}


async def test_a_command_gets_its_arguments_and_is_logged_with_its_output(
    directory: CommandDirectory, session: Session
) -> None:
    output = await directory.run(session, "/echo  two words\nand a line ")

    assert output == f"[two words\nand a line] in {session.id}"
    assert ran(session) == [CommandRan("echo", "two words\nand a line", output)]
    assert session.flushed == session.end


async def test_a_command_is_no_part_of_what_the_model_sees(
    directory: CommandDirectory, session: Session
) -> None:
    await directory.run(session, "/echo")

    assert session.history() == ()
    assert [event.surface for event in session.hot()] == [None]


@pytest.mark.parametrize(
    ("line", "name"), [("/ecko now", "ecko"), ("/", ""), ("", ""), ("//echo", "/echo"), (" ", "")]
)
async def test_an_unknown_command_names_the_nearest_and_logs_nothing(
    directory: CommandDirectory, session: Session, line: str, name: str
) -> None:
    with pytest.raises(CommandUnknown) as caught:
        await directory.run(session, line)

    assert caught.value.name == name
    assert "echo" in str(caught.value)
    assert ran(session) == []


async def test_a_refusal_is_logged_and_passed_on(
    directory: CommandDirectory, session: Session
) -> None:
    with pytest.raises(HealdError) as caught:
        await directory.run(session, "/refuse")

    assert caught.value.code == "TEST_REFUSED"
    assert ran(session) == [
        CommandRan("refuse", "", "not today; come back tomorrow", is_error=True)
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("fail", "ValueError: that is broken"),
        ("leave", "SystemExit: 3"),
        ("number", "TypeError: it returned int, not text"),
    ],
)
async def test_a_body_that_breaks_is_logged_and_told(
    directory: CommandDirectory, session: Session, name: str, reason: str
) -> None:
    with pytest.raises(CommandFailed) as caught:
        await directory.run(session, f"/{name} x")

    assert str(caught.value) == f"/{name} failed: {reason}"
    assert ran(session) == [CommandRan(name, "x", reason, is_error=True)]


async def test_a_command_that_is_cancelled_is_logged_as_such(
    directory: CommandDirectory, session: Session
) -> None:
    running = asyncio.create_task(directory.run(session, "/wait"))
    await asyncio.sleep(0)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert ran(session) == [CommandRan("wait", "", "cancelled", is_error=True)]


async def test_a_cancellation_is_one_though_the_log_takes_no_more(
    directory: CommandDirectory, session: Session, host: Host
) -> None:
    running = asyncio.create_task(directory.run(session, "/wait"))
    await asyncio.sleep(0)
    await host.scope.require(session_store).dispose(session)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_commands_are_those_of_the_composition_that_the_session_runs_on(
    host: Host, directory: CommandDirectory, store: SessionStore, session: Session
) -> None:
    above = await host.mount("above", [Row("others", "others")])
    other = await store.create(cwd=None, composition=above)

    names = [found.value.name for found in await directory.catalogue(other)]

    assert names == ["apart", "echo", "fail", "leave", "number", "refuse", "rename", "wait"]
    assert await directory.run(other, "/echo") == "another echo"
    assert await directory.run(session, "/echo") == f"[] in {session.id}"
    with pytest.raises(CommandUnknown):
        await directory.run(session, "/apart")
