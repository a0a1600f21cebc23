"""What was said gives way to a summary for the model, whoever wrote it and whoever reads it."""

from __future__ import annotations

import pytest

from heald import Host
from heald_session import (
    APPEND,
    EventInvalid,
    HistorySummary,
    LogOffset,
    Session,
    Shown,
    Surface,
    UserMessage,
    session_store,
)
from heald_session.testing import append_unchecked


@pytest.fixture
async def session(host: Host) -> Session:
    session = await host.scope.require(session_store).create(cwd=None)
    for text in "abcd":
        session.append("user/message", UserMessage(text, text), surface=APPEND)
    return session


def replaces(session: Session, first: int, last: int) -> Surface:
    shown = session.surface()
    return Surface("replace", shown[first].seq, shown[last].seq)


async def test_the_model_reads_a_summary_as_a_user_message(session: Session) -> None:
    summary = HistorySummary("s", "b and c")
    event = session.append("history/summary", summary, surface=replaces(session, 1, 2))
    read = UserMessage("s", "b and c")
    assert session.history() == (UserMessage("a", "a"), read, UserMessage("d", "d"))
    assert session.surface()[1] == Shown(event.seq, read)


async def test_a_summary_may_take_the_place_of_a_summary(host: Host, session: Session) -> None:
    for number in (1, 2):
        summary = HistorySummary(f"s{number}", "so far")
        session.append("history/summary", summary, surface=replaces(session, 0, 1))
    assert [message.text for message in session.history()] == ["so far", "d"]
    fork = await host.scope.require(session_store).fork(session.id, cut=LogOffset(5))
    assert [message.text for message in fork.history()] == ["so far", "c", "d"]


async def test_the_surface_has_a_place_for_what_cannot_be_read(session: Session) -> None:
    event = append_unchecked(session, "acme/gone", {"text": "x"}, surface=APPEND)
    assert session.surface()[-1] == Shown(event.seq, None)
    assert len(session.history()) == 4


async def test_a_range_that_is_not_on_the_surface_is_refused(session: Session) -> None:
    gone = replaces(session, 0, 1)
    session.append("history/summary", HistorySummary("s", "a and b"), surface=gone)
    with pytest.raises(EventInvalid, match="does not begin and end on the surface"):
        session.append("history/summary", HistorySummary("t", "again"), surface=gone)
