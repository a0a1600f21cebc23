"""Which preset a session runs on, and its place there; without the preset plugin there is none."""

from __future__ import annotations

from pathlib import Path

from heald import Scope
from heald_preset import PresetConflict, Presets, Seat, presets
from heald_projection import projections
from heald_session import Session

AGENT_PRESET = "agentPreset"
"""The projection that says what a session runs now."""

NONE = "(none)"
"""What an error calls the place of a session that runs on the host's rows alone."""


async def seat_for(scope: Scope, preset: str | None, cwd: Path) -> Seat | None:
    """Take a place on a preset for a session that is about to be made."""
    service = _presets(scope, preset)
    return await service.seat(preset, cwd) if service is not None else None


async def seat_again(scope: Scope, session: Session, preset: str | None) -> None:
    """Let a session that was loaded run on its preset; raises `PresetConflict` for another.

    A session that runs above the host's composition has a place already.
    """
    service = _presets(scope, preset)
    if service is None:
        return
    running = await preset_of(scope, session)
    if preset is not None and preset != running:
        raise PresetConflict(session.id, running or NONE, preset)
    if running is None or session.scope.composition is not scope.host.composition:
        return
    cwd = Path(session.header.cwd) if session.header.cwd else None
    seat = await service.seat(running, cwd)
    try:
        service.occupy(session, seat)
    except BaseException:
        await seat.release()
        raise


async def preset_of(scope: Scope, session: Session) -> str | None:
    """Return the preset that a session runs: what the projection says, else how it started."""
    service = scope.find(projections)
    if service is None:
        return session.header.agent_preset
    try:
        await service.ready(session, [AGENT_PRESET])
        state = service.state(session, AGENT_PRESET)
    except KeyError:
        return session.header.agent_preset
    preset: str | None = state["preset"] if state else None
    return preset


def _presets(scope: Scope, preset: str | None) -> Presets | None:
    """Return the service; None is right only where no preset is asked for."""
    return scope.find(presets) if preset is None else scope.require(presets)
