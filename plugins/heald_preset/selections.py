"""The log of which preset a session was moved to, which is written by what moves it."""

from __future__ import annotations

import attrs

from heald_preset.events import AGENT_PRESET_SELECTED, AgentPresetSelected
from heald_session import AppendGuard, Event, Proposal, Session, session_store


@attrs.define(eq=False)
class Selections:
    """Logs that a session was moved, and refuses to let anybody else say so.

    Such an event would say what is not so, and nobody would have asked whether the session is
    still blank.
    """

    _moved: Session | None = None

    def log(self, session: Session, preset: str) -> Event:
        """Log that a session was moved just now."""
        self._moved = session
        try:
            return session.append(AGENT_PRESET_SELECTED.name, AgentPresetSelected(preset))
        finally:
            self._moved = None

    def guard(self) -> AppendGuard:
        """Make the guard that sees to it."""
        return AppendGuard(self._check, frozenset({AGENT_PRESET_SELECTED.name}))

    def _check(self, proposal: Proposal) -> None:
        session = proposal.session
        if session is self._moved or _is_new(session):
            return
        raise PermissionError(
            f"only what moves a session to a preset may log it; call `switch` of the service "
            f"`presets`, or use `heald presets use ID --session {session.id}`"
        )


def _is_new(session: Session) -> bool:
    """Say whether a session has no event yet and nobody can see it: it begins with its choice."""
    return session.end == 0 and session.scope.require(session_store).get(session.id) is not session
