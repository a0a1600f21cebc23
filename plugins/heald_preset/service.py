"""The service that others look presets up in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from heald import Scope, Stack
from heald_preset.contracts import Preset, PresetChoice, Seat
from heald_preset.documents import Document
from heald_preset.errors import PresetInvalid
from heald_preset.generations import Generation, generation, resolve
from heald_preset.listing import listed
from heald_preset.problems import PresetProblem
from heald_preset.roots import roots
from heald_preset.roster import Roster
from heald_preset.seating import Seating
from heald_preset.selections import Selections
from heald_preset.standing import House
from heald_preset.switching import Switching
from heald_session import Session


class PresetService:
    """Reads the roster anew for each question, and knows which session sits where.

    Files are read in a thread.
    """

    def __init__(self, scope: Scope, row: str, house: House, selections: Selections) -> None:
        self._scope = scope
        self._row = row
        self._house = house
        self._seating = Seating()
        self._switching = Switching(scope, house, self._seating, selections, self._generation)

    async def roster(self, cwd: Path | None) -> Sequence[Preset]:
        """List every preset, by the order they ask for and then by id."""
        found, host = roots(self._scope, cwd), self._scope.host
        return await asyncio.to_thread(lambda: listed(Roster(found), host))

    async def resolve(self, preset: str, cwd: Path | None) -> Stack:
        """Return the rows that a preset comes to."""
        chain = await self._read(preset, cwd)
        try:
            return resolve(chain, self._scope.host)
        except PresetProblem as error:
            raise PresetInvalid(preset, str(error)) from error

    async def check(self, preset: str, cwd: Path | None) -> None:
        """Mount a preset for nobody, and stop it again."""
        await self._house.try_out(await self._generation(preset, cwd))

    async def default(self) -> str:
        """Return the default as it is set now."""
        config = await asyncio.to_thread(self._scope.host.reread, self._row)
        default: str = config.default
        return default

    async def seat(self, preset: str | None, cwd: Path | None) -> Seat:
        """Join the composition of a preset's newest generation."""
        named = await self.default() if preset is None else preset
        return await self._house.join(await self._generation(named, cwd))

    async def seat_beside(self, session: Session) -> Seat | None:
        """Join the generation that a session runs on, though its files may have changed since."""
        seat = self._seating.of(session)
        return seat.another() if seat is not None else None

    def occupy(self, session: Session, seat: Seat) -> None:
        """Move a session to a seat's composition; every seat it took is released as it closes."""
        self._seating.occupy(session, seat)

    async def running(self, session: Session) -> str | None:
        """Return the preset that a session runs, which is what its log says."""
        return await self._switching.running(session)

    async def sit(
        self, session: Session, *, preset: str | None = None, continue_as: str | None = None
    ) -> None:
        """Let a session that was loaded run on its preset, or go on with another."""
        await self._switching.sit(session, preset, continue_as)

    async def switch(self, session: Session, preset: str) -> PresetChoice:
        """Let a blank session run on the newest generation of a preset."""
        return await self._switching.switch(session, preset)

    async def vacate(self, session: Session) -> None:
        """Release what a session that closes sat on."""
        await self._seating.vacate(session)

    async def _read(self, preset: str, cwd: Path | None) -> tuple[Document, ...]:
        """Read a preset's file after those of what it extends."""
        found = roots(self._scope, cwd)

        def read() -> tuple[Document, ...]:
            roster = Roster(found)
            return roster.chain(roster.entry(preset))

        try:
            return await asyncio.to_thread(read)
        except PresetProblem as error:
            raise PresetInvalid(preset, str(error)) from error

    async def _generation(self, preset: str, cwd: Path | None) -> Generation:
        chain = await self._read(preset, cwd)
        try:
            return generation(preset, chain, self._scope.host)
        except PresetProblem as error:
            raise PresetInvalid(preset, str(error)) from error
