"""The projections `title` and `sessionStats`."""

from __future__ import annotations

from typing import Any

import pytest

from heald import Host, Row
from heald.testing import HostFactory
from heald_projection import projections
from heald_session import APPEND, Session, session_store
from heald_session.testing import append_unchecked

ROWS = [Row(id=name, plugin=name) for name in ("session", "projection")]


async def opened(host: Host) -> Session:
    return await host.scope.require(session_store).create(cwd=None)


def view(session: Session, key: str) -> Any:
    return session.scope.require(projections).snapshot(session, [key]).values[key]


def prompt(session: Session, text: str) -> None:
    session.append("user/message", {"id": str(session.end), "text": text}, surface=APPEND)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Count the files", "Count the files"),
        ("\n  Count \nthe files", "Count"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
    ],
)
async def test_a_title_is_the_first_line_of_the_first_prompt(
    heald_host: HostFactory, text: str, title: str
) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        assert view(session, "title") is None
        prompt(session, " \n ")
        assert view(session, "title") is None
        prompt(session, text)
        prompt(session, "Something else")
        assert view(session, "title") == {"text": title}


async def test_the_title_that_a_person_gave_wins_over_every_prompt(
    heald_host: HostFactory,
) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        session.append("session/renamed", {"title": "  Mending\nthe loom"})
        assert view(session, "title") == {"text": "Mending"}
        prompt(session, "Count the files")
        assert view(session, "title") == {"text": "Mending"}
        session.append("session/renamed", {"title": "x" * 81})
        assert view(session, "title") == {"text": "x" * 79 + "…"}
        session.append("session/renamed", {"title": " \n "})
        append_unchecked(session, "session/renamed", {"title": 7})
        assert view(session, "title") == {"text": "x" * 79 + "…"}
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        prompt(session, "Count the files")
        session.append("session/renamed", {"title": "Mending"})
        assert view(session, "title") == {"text": "Mending"}
        assert view(session, "sessionStats")["last_activity"] == session.hot()[0].time


async def test_stats_count_turns_steps_tools_that_ran_and_tokens(heald_host: HostFactory) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        assert view(session, "sessionStats") == {
            "turns": 0,
            "steps": 0,
            "tools": {},
            "input_tokens": 0,
            "output_tokens": 0,
            "last_activity": None,
        }
        session.append("turn/start", {"turn": 1})
        for step in (1, 2):
            session.append("step/start", {"turn": 1, "step": step, "model": "scripted:demo"})
            usage = {"input_tokens": 10, "output_tokens": step}
            call = {"id": f"c{step}", "name": "read", "arguments": {}}
            message = {"text": "", "tool_calls": [call], "usage": usage}
            session.append("assistant/message", message, surface=APPEND)
            session.append("tool/start", {"call_id": f"c{step}", "name": "read"})
            result = {"call_id": f"c{step}", "name": "read", "text": "done"}
            session.append("tool/result", result, surface=APPEND)
            session.append("step/end", {"turn": 1, "step": step})
        end = session.append("turn/end", {"turn": 1, "outcome": "completed"})
        assert view(session, "sessionStats") == {
            "turns": 1,
            "steps": 2,
            "tools": {"read": 2},
            "input_tokens": 20,
            "output_tokens": 3,
            "last_activity": end.time,
        }


async def test_data_that_does_not_fit_its_type_counts_for_nothing(heald_host: HostFactory) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await opened(host)
        unfit: list[Any] = [None, [], {"text": 5}, {"text": "x", "usage": 3}, {"name": []}]
        for data in unfit:
            for type_name in ("user/message", "assistant/message", "tool/start"):
                append_unchecked(session, type_name, data)
        stats = view(session, "sessionStats")
        assert (stats["tools"], stats["input_tokens"]) == ({}, 0)
        assert view(session, "title") is None
