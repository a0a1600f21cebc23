"""The slash command `/rename`: a person gives the session a title."""

from __future__ import annotations

from heald_commands import Command, CommandCall
from heald_session.errors import TitleEmpty
from heald_session.naming import SessionRenamed


async def _rename(call: CommandCall) -> str:
    if not call.arguments:
        raise TitleEmpty
    call.session.append("session/renamed", SessionRenamed(call.arguments))
    return f"The session is now called {call.arguments}"


RENAME_COMMAND = Command("rename", "Give the session a title: /rename TITLE", _rename)
