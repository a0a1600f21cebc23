"""Events that must be understood by whoever goes on with a log."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from heald_session.errors import LogNeedsPlugin
from heald_session.events import Event
from heald_session.positions import SessionId
from heald_session.vocabulary import EventTypes


@attrs.define
class Needs:
    """Follows a log to know which required types nothing installed declares."""

    _types: EventTypes
    _unmet: set[str] = attrs.field(factory=set)

    def follow(self, events: Iterable[Event]) -> None:
        """Follow the log through its next events."""
        for event in events:
            if event.required and not self._types.understands(event.type):
                self._unmet.add(event.type)

    def refuse_unmet(self, id: SessionId) -> None:  # noqa: A002
        """Raise `LogNeedsPlugin` if there are any."""
        if self._unmet:
            raise LogNeedsPlugin(id, tuple(sorted(self._unmet)))
