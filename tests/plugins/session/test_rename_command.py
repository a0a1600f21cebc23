"""`/rename`: a person's title for the session they are in."""

from __future__ import annotations

from typing import Any

import pytest

from heald import HealdError, Host, Row
from heald.testing import HostFactory
from heald_commands import command_directory
from heald_projection import projections
from heald_session import Session, session_store

ROWS = [Row(name, name) for name in ("session", "projection", "commands")]


async def run(host: Host, session: Session, line: str) -> str:
    return await host.scope.require(command_directory).run(session, line)


def title(host: Host, session: Session) -> Any:
    return host.scope.require(projections).snapshot(session, ["title"]).values["title"]


async def test_the_title_is_logged_and_shown_without_a_turn(heald_host: HostFactory) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await host.scope.require(session_store).create(cwd=None)
        told = await run(host, session, "/rename  Mending the roof ")
        assert told == "The session is now called Mending the roof"
        assert title(host, session) == {"text": "Mending the roof"}
        assert [e.type for e in session.hot()] == ["session/renamed", "command/ran"]
        assert session.flushed == session.end


@pytest.mark.parametrize("line", ["/rename", "/rename   "])
async def test_a_title_has_a_character(heald_host: HostFactory, line: str) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await host.scope.require(session_store).create(cwd=None)
        with pytest.raises(HealdError, match="at least one visible character"):
            await run(host, session, line)
        assert title(host, session) is None
