"""Whether a session may still change its preset: whether no turn of its log has begun."""

from __future__ import annotations

import attrs

from heald_preset.errors import PresetLocked
from heald_session import Event, LogOffset, Session, after

_BEGINS = "turn/start"
_SUBAGENT = "subagent"
"""The origin of a session whose preset is its parent's to choose."""


@attrs.define
class Blankness:
    """Looks for the first turn in a session's log, at each event once."""

    _session: Session
    _otherwise: PresetLocked
    """What to raise if the session is not blank."""
    _offset: LogOffset = LogOffset(0)
    _begun: bool = False

    async def read(self) -> None:
        """Look at what is no longer in memory, so that `check` can be asked next."""
        while self._offset < self._session.hot_from:
            async for event in self._session.read(self._offset, self._session.hot_from):
                if self._begins(event):
                    return

    def check(self) -> None:
        """Raise unless the session is blank at this moment."""
        begun = self._begun or any(map(self._begins, self._session.hot(self._offset)))
        if begun or self._session.header.origin == _SUBAGENT:
            raise self._otherwise

    def _begins(self, event: Event) -> bool:
        self._offset = after(event.seq)
        self._begun = event.type == _BEGINS
        return self._begun
