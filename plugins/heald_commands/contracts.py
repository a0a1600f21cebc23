"""What slash commands are to everyone else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from heald import Contribution
from heald_session import Session


@attrs.frozen
class CommandCall:
    """One use of a command."""

    session: Session
    arguments: str
    """What was typed after the name."""


@attrs.frozen
class Command:
    """A slash command, contributed through `heald_commands.commands`; runs without a model turn."""

    name: str
    """Without the slash."""
    description: str
    run: Callable[[CommandCall], Awaitable[str]]
    """Do it, and return what the person reads; raise a `HealdError` to refuse."""


class CommandSource(Protocol):
    """Commands that come and go while their row runs, as files do.

    `cwd` is the directory that a session works in, if it has one.
    """

    async def catalogue(self, cwd: Path | None) -> Sequence[Command]:
        """Return the commands there are now."""
        ...

    async def find(self, name: str, cwd: Path | None) -> Command | None:
        """Return the command of a name, without making the others."""
        ...


class CommandDirectory(Protocol):
    """The commands of a session: those of the composition it runs on."""

    async def catalogue(self, session: Session) -> Sequence[Contribution[Command]]:
        """Return the session's commands by name: those that `run` would run now."""
        ...

    async def run(self, session: Session, line: str) -> str:
        """Run a line such as `/name arguments`, log it, and return what the person reads.

        Raises `CommandUnknown`, or `CommandFailed` after logging it.
        """
        ...
