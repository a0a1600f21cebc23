"""The guards that an event must pass before it is committed."""

from __future__ import annotations

import attrs
import msgspec

from heald import Contribution
from heald_session.contracts import AppendGuard, Proposal, Session
from heald_session.errors import AppendRefused
from heald_session.events import NewEvent

_REFUSALS = (Exception, SystemExit)


def ask(guard: Contribution[AppendGuard], session: Session, new: NewEvent, text: bytes) -> None:
    """Let a guard refuse an event; it gets a copy of the data."""
    event = attrs.evolve(new, data=msgspec.json.decode(text))
    try:
        guard.value.check(Proposal(session, event))
    except _REFUSALS as error:
        reason = str(error) or type(error).__name__
        raise AppendRefused(new.type, guard.origin.plugin, reason) from error
