"""The slash command `/preset`: which preset a session runs on, and the choice of another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heald_commands import Command, CommandCall
from heald_preset.contracts import Preset, Presets

_DESCRIPTION = "Show the presets, or choose another before the first turn: /preset ID"


def preset_command(service: Presets) -> Command:
    """Make the command for a host's presets."""

    async def run(call: CommandCall) -> str:
        if call.arguments:
            return await _choose(service, call)
        return await _show(service, call)

    return Command("preset", _DESCRIPTION, run)


async def _choose(service: Presets, call: CommandCall) -> str:
    choice = await service.switch(call.session, call.arguments)
    already = " already" if choice.seq is None else ""
    return f"The preset is {choice.preset}{already}."


async def _show(service: Presets, call: CommandCall) -> str:
    cwd = call.session.header.cwd
    running = await service.running(call.session)
    roster = await service.roster(Path(cwd) if cwd else None)
    lines = [f"The preset is {running or 'none'}. Choose with /preset ID before the first turn:"]
    lines += [line for preset in roster if not preset.shadowed for line in _lines(preset, running)]
    return "\n".join(lines)


def _lines(preset: Preset, running: str | None) -> Iterator[str]:
    mark = "*" if preset.id == running else " "
    if preset.problem is not None:
        yield f"{mark} {preset.id}: cannot be used: {preset.problem.splitlines()[0]}"
    else:
        yield f"{mark} {preset.id}: {preset.description or preset.label}"
