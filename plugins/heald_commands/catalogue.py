"""Which commands there are: those that rows contributed, then those of sources."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import attrs

from heald import Contribution, RowOrigin, Scope
from heald_commands.contracts import Command, CommandSource
from heald_commands.hookspecs import command_sources, commands

_logger = logging.getLogger("heald_commands")


@attrs.frozen
class Listed:
    """A command, whose it is, and who has its name if that is somebody else."""

    command: Command
    origin: RowOrigin
    hidden_by: RowOrigin | None = None


async def listed(scope: Scope, cwd: Path | None) -> list[Listed]:
    """Return every command by name, the hidden ones of a name after the one that is run."""
    found = [Listed(c.value, c.origin) for c in scope.collect(commands)]
    owners = {each.command.name: each.origin for each in found}
    for source in scope.collect(command_sources):
        for command in await _all_of(source, cwd):
            found.append(Listed(command, source.origin, owners.get(command.name)))
            owners.setdefault(command.name, source.origin)
    return sorted(found, key=lambda each: (each.command.name, each.hidden_by is not None))


async def named(scope: Scope, name: str, cwd: Path | None) -> Command | None:
    """Return the command of a name; no source is asked for what a row contributed."""
    for contributed in scope.collect(commands):
        if contributed.value.name == name:
            return contributed.value
    for source in scope.collect(command_sources):
        if (command := await _one_of(source, name, cwd)) is not None:
            return command
    return None


async def _all_of(source: Contribution[CommandSource], cwd: Path | None) -> Sequence[Command]:
    try:
        return await source.value.catalogue(cwd)
    except Exception:
        _logger.exception("commands of row %s cannot be listed", source.origin.row)
        return ()


async def _one_of(
    source: Contribution[CommandSource], name: str, cwd: Path | None
) -> Command | None:
    try:
        return await source.value.find(name, cwd)
    except Exception:
        _logger.exception("commands of row %s cannot be searched", source.origin.row)
        return None
