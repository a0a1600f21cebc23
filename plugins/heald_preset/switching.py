"""Which preset a live session runs on: found again as it is resumed, changed while it is blank."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

import attrs

from heald import Scope
from heald_preset.blankness import Blankness
from heald_preset.contracts import PresetChoice, Seat
from heald_preset.errors import (
    PresetConflict,
    PresetGone,
    PresetInvalid,
    PresetLocked,
    PresetNotFound,
)
from heald_preset.events import AGENT_PRESET_SELECTED
from heald_preset.generations import Generation
from heald_preset.hookspecs import preset_left
from heald_preset.projection import AGENT_PRESET
from heald_preset.seating import Seating
from heald_preset.selections import Selections
from heald_preset.standing import House
from heald_projection import projections
from heald_session import Event, Session, SessionClosed

_logger = logging.getLogger("heald_preset")

NONE = "(none)"
"""What an error calls the preset of a session that runs on the host's rows alone."""


@attrs.define(eq=False)
class Switching:
    """Moves sessions between compositions, each session by one caller at a time."""

    _scope: Scope
    _house: House
    _seating: Seating
    _selections: Selections
    _generation: Callable[[str, Path | None], Awaitable[Generation]]
    """Says what a preset resolves to now."""
    _locks: WeakKeyDictionary[Session, asyncio.Lock] = attrs.field(factory=WeakKeyDictionary)
    _leaving: set[asyncio.Task[None]] = attrs.field(factory=set)

    async def running(self, session: Session) -> str | None:
        """Return the preset that a session runs, which is what its log says."""
        if (service := session.scope.find(projections)) is not None:
            await service.ready(session, [AGENT_PRESET.key])
            preset: str | None = service.state(session, AGENT_PRESET.key)["preset"]
            return preset
        state = AGENT_PRESET.initial(session.header, session.cut)
        async for event in session.read():
            if event.type == AGENT_PRESET_SELECTED.name:
                state = AGENT_PRESET.apply(state, event)
        chosen: str | None = state["preset"]
        return chosen

    async def sit(self, session: Session, preset: str | None, continue_as: str | None) -> None:
        """Let a session that was loaded run on its preset, or go on with another."""
        async with self._lock(session):
            running = await self.running(session)
            if preset is not None:
                _refuse_another(session, running, preset)
            placed = session.scope.composition is not self._scope.host.composition
            if running is not None and not placed:
                await self._sit(session, running, continue_as)
            elif continue_as is not None:
                _refuse_another(session, running, continue_as)

    async def _sit(self, session: Session, running: str, continue_as: str | None) -> None:
        try:
            seat = await self._join(session, running)
        except (PresetNotFound, PresetInvalid) as error:
            if continue_as is not None:
                await self._move(session, await self._join(session, continue_as))
                return
            if isinstance(error, PresetNotFound):
                raise PresetGone(session.id, running, error.known) from error
            raise
        async with _unless_taken(seat):
            if continue_as is not None:
                _refuse_another(session, running, continue_as)
            self._seating.occupy(session, seat)

    async def switch(self, session: Session, preset: str) -> PresetChoice:
        """Let a blank session run on the newest generation of a preset."""
        async with self._lock(session):
            running = await self.running(session)
            locked = PresetLocked(session.id, running or NONE, preset)
            blank = Blankness(session, locked)
            await blank.read()
            blank.check()
            generation = await self._generation(preset, _cwd(session))
            if self._runs(session, running, generation):
                return PresetChoice(preset, None)
            return await self._move(session, await self._house.join(generation), blank)

    def _runs(self, session: Session, running: str | None, wanted: Generation) -> bool:
        if (seat := self._seating.of(session)) is None:
            return running == wanted.preset
        return seat.generation == wanted.key and seat.composition.is_whole

    async def _join(self, session: Session, preset: str) -> Seat:
        return await self._house.join(await self._generation(preset, _cwd(session)))

    async def _move(
        self, session: Session, seat: Seat, blank: Blankness | None = None
    ) -> PresetChoice:
        """Move a session to a seat, and return when that is durable and the old one is left."""
        async with _unless_taken(seat):
            if blank is not None:
                await blank.read()
            event, leaving = self._commit(session, seat, blank)
        try:
            await session.flush()
        finally:
            await self._leave(session, leaving)
        return PresetChoice(seat.preset, event.seq)

    def _commit(
        self, session: Session, seat: Seat, blank: Blankness | None
    ) -> tuple[Event, AsyncExitStack]:
        """Move a session and log it; return what undoes the rest of where it was.

        It awaits nothing, and neither does the opening of a turn, so neither can find the other
        half done.
        """
        if session.closed:
            raise SessionClosed(session.id)
        if blank is not None:
            blank.check()
        scope, before = session.scope, session.scope.composition
        scope.move_to(seat.composition)  # which raises if it is stopping
        try:
            event = self._selections.log(session, seat.preset)
        except BaseException:
            scope.move_to(before)
            raise
        leaving = AsyncExitStack()
        for left in self._seating.replace(session, seat):
            leaving.push_async_callback(left.release)
        scope.notify(preset_left, session, leaving)
        return event, leaving

    async def _leave(self, session: Session, leaving: AsyncExitStack) -> None:
        """Undo what was left to the end, whoever gives up waiting for it."""
        task = asyncio.create_task(_undone(session, leaving), name=f"moving {session.id}")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        await asyncio.shield(task)

    def _lock(self, session: Session) -> asyncio.Lock:
        return self._locks.setdefault(session, asyncio.Lock())


@asynccontextmanager
async def _unless_taken(seat: Seat) -> AsyncIterator[None]:
    """Release a seat if the block that is to take it raises."""
    try:
        yield
    except BaseException:
        await seat.release()
        raise


def _refuse_another(session: Session, running: str | None, asked: str) -> None:
    if asked != running:
        raise PresetConflict(session.id, running or NONE, asked)


async def _undone(session: Session, leaving: AsyncExitStack) -> None:
    try:
        await leaving.aclose()
    except Exception:
        _logger.exception("%s did not leave its old preset cleanly", session.id)


def _cwd(session: Session) -> Path | None:
    return Path(session.header.cwd) if session.header.cwd else None
