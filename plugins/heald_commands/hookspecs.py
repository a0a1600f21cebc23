"""The hooks that slash commands own."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from heald import collect, provide
from heald_commands.contracts import Command, CommandDirectory, CommandSource


@collect(key=attrgetter("name"))
def commands() -> Iterable[Command]:
    """Contribute slash commands to every session that runs on the row's composition."""
    ...


@collect
def command_sources() -> Iterable[CommandSource]:
    """Contribute commands that change while the row runs.

    A name that is contributed through `commands` is never a source's, and of two sources the
    earlier one has it.
    """
    ...


@provide
def command_directory() -> CommandDirectory:
    """Find and run a session's commands."""
    ...
