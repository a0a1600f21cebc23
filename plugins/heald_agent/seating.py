"""Which preset a session runs on, and its place there; without the preset plugin there is none."""

from __future__ import annotations

from pathlib import Path

from heald import Scope
from heald_preset import Presets, Seat, presets
from heald_session import Session


async def seat_for(scope: Scope, preset: str | None, cwd: Path) -> Seat | None:
    """Take a place on a preset for a session that is about to be made."""
    service = _presets(scope, preset)
    return await service.seat(preset, cwd) if service is not None else None


async def seat_again(
    scope: Scope, session: Session, preset: str | None, continue_as: str | None
) -> None:
    """Let a session that was loaded run on its preset, or go on with another one."""
    service = _presets(scope, preset or continue_as)
    if service is not None:
        await service.sit(session, preset=preset, continue_as=continue_as)


def _presets(scope: Scope, named: str | None) -> Presets | None:
    """Return the service; None is right only where no preset is asked for."""
    return scope.find(presets) if named is None else scope.require(presets)
