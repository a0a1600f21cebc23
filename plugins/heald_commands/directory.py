"""Finds a session's commands, runs them and logs what came of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from heald import Contribution, HealdError, describe
from heald_commands.catalogue import listed, named
from heald_commands.contracts import Command, CommandCall
from heald_commands.errors import CommandFailed, CommandUnknown
from heald_commands.events import COMMAND_RAN, CommandRan
from heald_session import Session

_LINE = re.compile(r"\s*/?(\S*)\s*(.*?)\s*", re.DOTALL)


class Directory:
    """The commands of every session: whatever the composition it runs on has now."""

    async def catalogue(self, session: Session) -> Sequence[Contribution[Command]]:
        """Return the session's commands by name."""
        found = await listed(session.scope, _cwd(session))
        return [Contribution(each.command, each.origin) for each in found if not each.hidden_by]

    async def run(self, session: Session, line: str) -> str:
        """Run a line, and return what the person reads once it is durably logged."""
        name, arguments = _parse(line)
        command = await self._find(session, name)
        try:
            output = _text(await command.run(CommandCall(session, arguments)))
        except HealdError as error:
            await _log(session, CommandRan(name, arguments, str(error), is_error=True))
            raise
        except asyncio.CancelledError:
            with suppress(HealdError):  # a log that takes no more must not hide the cancellation
                _append(session, CommandRan(name, arguments, "cancelled", is_error=True))
            raise
        except (Exception, SystemExit) as error:
            reason = describe(error)
            await _log(session, CommandRan(name, arguments, reason, is_error=True))
            raise CommandFailed(name, reason) from error
        await _log(session, CommandRan(name, arguments, output))
        return output

    async def _find(self, session: Session, name: str) -> Command:
        if (command := await named(session.scope, name, _cwd(session))) is None:
            known = [found.value.name for found in await self.catalogue(session)]
            raise CommandUnknown(name, tuple(known))
        return command


def _cwd(session: Session) -> Path | None:
    return Path(session.header.cwd) if session.header.cwd else None


def _parse(line: str) -> tuple[str, str]:
    match = _LINE.fullmatch(line)
    return (match[1], match[2]) if match else ("", "")


def _text(output: object) -> str:
    if not isinstance(output, str):
        raise TypeError(f"it returned {type(output).__name__}, not text")
    return output


async def _log(session: Session, ran: CommandRan) -> None:
    _append(session, ran)
    await session.flush()


def _append(session: Session, ran: CommandRan) -> None:
    session.append(COMMAND_RAN.name, ran)
