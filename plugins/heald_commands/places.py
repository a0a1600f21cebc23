"""Where commands are looked up for a session that may not be live."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs

from heald import Host, Scope
from heald_preset import PresetGone, PresetNotFound, Presets, Seat, presets
from heald_query import find_session, session_query
from heald_session import SessionId, session_store


@attrs.frozen
class Place:
    """What a session runs on and where, or what a new one would."""

    scope: Scope
    cwd: Path | None
    preset: str | None
    """None where sessions run on the host's rows alone."""


@asynccontextmanager
async def place_of(
    host: Host, session: str | None, *, preset: str | None = None
) -> AsyncIterator[Place]:
    """Stand where a session runs for the length of a block, writing nothing.

    `session` is an id or its beginning; None is a new session in the current directory. A preset
    that is not running is mounted meanwhile: `preset`, else the session's own, else the default.
    Raises what finding the session and mounting its preset raise; `PresetGone` if it is not there.
    """
    cwd: Path | None = Path.cwd()
    ran: SessionId | None = None
    if session is not None:
        query = host.scope.require(session_query)
        id_ = await find_session(query, session)
        live = host.scope.require(session_store).get(id_)
        async with query.observe_session(id_, ["agentPreset"]) as seen:
            cwd = Path(seen.header.cwd) if seen.header.cwd else None
            own = seen.projections.values.get("agentPreset", seen.header.agent_preset)
        if live is not None and preset in (None, own):
            yield Place(live.scope, cwd, own)
            return
        if preset is None:
            preset, ran = own, id_
    service = host.scope.find(presets)
    if service is None or (session is not None and preset is None):
        yield Place(host.scope, cwd, None)
        return
    seat = await _seat(service, preset, cwd, ran)
    try:
        yield Place(seat.composition.scope, cwd, seat.preset)
    finally:
        await seat.release()


async def _seat(
    service: Presets, preset: str | None, cwd: Path | None, ran: SessionId | None
) -> Seat:
    """Take a place on a preset, which is the one that the session `ran` on if that is given."""
    try:
        return await service.seat(preset, cwd)
    except PresetNotFound as error:
        if ran is None or preset is None:
            raise
        raise PresetGone(ran, preset, error.known) from error
