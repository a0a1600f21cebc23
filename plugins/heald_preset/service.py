"""The service that others look presets up in."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

from heald import Scope, Stack
from heald_preset.contracts import Preset, Seat
from heald_preset.errors import PresetInvalid
from heald_preset.generations import Generation, resolve
from heald_preset.problems import PresetProblem
from heald_preset.roots import roots
from heald_preset.roster import Entry, Roster
from heald_preset.standing import House
from heald_session import Session, SessionClosed


class PresetService:
    """Reads the roster anew for each question, and knows which session sits where."""

    def __init__(self, scope: Scope, house: House, default: str) -> None:
        self._scope = scope
        self._house = house
        self._default = default
        self._occupied: dict[str, list[Seat]] = {}

    def roster(self, cwd: Path | None) -> Sequence[Preset]:
        """List every preset, by the order they ask for and then by id."""
        roster = self._read(cwd)
        presets = (self._preset(roster, entry) for entry in roster.entries)
        return sorted(presets, key=attrgetter("order", "id"))

    def resolve(self, preset: str, cwd: Path | None) -> Stack:
        """Return the rows that a preset comes to."""
        return self._generation(preset, cwd).stack

    def default(self) -> str:
        """Return the configured default."""
        return self._default

    async def seat(self, preset: str | None, cwd: Path | None) -> Seat:
        """Join the composition of a preset's newest generation."""
        named = self._default if preset is None else preset
        return await self._house.join(self._generation(named, cwd))

    async def seat_beside(self, session: Session) -> Seat | None:
        """Join the generation that a session runs on, though its files may have changed since."""
        if (seats := self._occupied.get(session.id)) is None:
            return None
        return self._house.beside(seats[-1].generation)

    def occupy(self, session: Session, seat: Seat) -> None:
        """Move a session to a seat's composition; every seat it took is released as it closes."""
        if session.closed:
            raise SessionClosed(session.id)
        session.scope.move_to(seat.composition)
        self._occupied.setdefault(session.id, []).append(seat)

    async def vacate(self, session: Session) -> None:
        """Release what a session that closes sat on."""
        for seat in self._occupied.pop(session.id, ()):
            await seat.release()

    def _read(self, cwd: Path | None) -> Roster:
        return Roster(roots(self._scope, cwd))

    def _generation(self, preset: str, cwd: Path | None) -> Generation:
        roster = self._read(cwd)
        try:
            return resolve(roster, roster.entry(preset), self._scope.host)
        except PresetProblem as error:
            raise PresetInvalid(preset, str(error)) from error

    def _preset(self, roster: Roster, entry: Entry) -> Preset:
        """Describe an entry as far as it can be read, with what is wrong with it."""
        try:
            document = roster.document(entry)
        except PresetProblem as error:
            return Preset(
                entry.id,
                entry.root,
                entry.path,
                label=entry.id,
                problem=str(error),
                shadowed=entry.shadowed,
            )
        return Preset(
            entry.id,
            entry.root,
            entry.path,
            label=document.label or entry.id,
            description=document.description,
            order=document.order,
            extends=document.extends,
            problem=self._problem(roster, entry),
            shadowed=entry.shadowed,
        )

    def _problem(self, roster: Roster, entry: Entry) -> str | None:
        try:
            resolve(roster, entry, self._scope.host)
        except PresetProblem as error:
            return str(error)
        return None
