"""Which session sits where: the compositions that live sessions run on."""

from __future__ import annotations

import attrs

from heald_preset.contracts import Seat
from heald_session import Session, SessionClosed, SessionId


@attrs.define
class Seating:
    """The seats of live sessions, by id; a session that runs on the host's rows has none."""

    _taken: dict[SessionId, list[Seat]] = attrs.field(factory=dict)

    def of(self, session: Session) -> Seat | None:
        """Return the seat that a session runs on."""
        seats = self._taken.get(session.id)
        return seats[-1] if seats else None

    def occupy(self, session: Session, seat: Seat) -> None:
        """Move a session to a seat's composition; every seat it took is released as it closes."""
        if session.closed:
            raise SessionClosed(session.id)
        session.scope.move_to(seat.composition)
        self._taken.setdefault(session.id, []).append(seat)

    def replace(self, session: Session, seat: Seat) -> list[Seat]:
        """Note that a session runs on a seat alone; return the seats that are to be released."""
        left = self._taken.get(session.id, [])
        self._taken[session.id] = [seat]
        return left

    async def vacate(self, session: Session) -> None:
        """Release what a session that closes sat on."""
        for seat in self._taken.pop(session.id, ()):
            await seat.release()
