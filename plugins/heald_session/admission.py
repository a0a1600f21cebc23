"""The guards that an event must pass before it is committed."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import msgspec

from heald import Contribution
from heald_session.contracts import AppendGuard, Proposal, Session
from heald_session.errors import AppendRefused
from heald_session.events import NewEvent

_REFUSALS = (Exception, SystemExit)


def ask_guards(
    guards: Iterable[Contribution[AppendGuard]], session: Session, new: NewEvent, text: bytes
) -> None:
    """Let guards refuse an event; each gets a copy of the data."""
    for guard in guards:
        event = attrs.evolve(new, data=msgspec.json.decode(text))
        try:
            guard.value(Proposal(session, event))
        except _REFUSALS as error:
            reason = str(error) or type(error).__name__
            raise AppendRefused(new.type, guard.origin.plugin, reason) from error
