"""The facts of a session's creation, which never change."""

from __future__ import annotations

import msgspec

from heald_session.positions import SessionId

FORMAT_VERSION = 1
"""The version of the log's format that is written; a newer one is listed and not opened."""


class Header(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Creation facts, kept beside the log.

    The header says whether a session was seeded with another's events, never with how many: the
    exact cut travels beside it.
    """

    version: int
    """The format the log is written in: `FORMAT_VERSION` for one of ours."""
    id: SessionId
    log_id: str
    """Random: two sessions that had the same id in turn differ in it."""
    created_at: int
    """Milliseconds since the epoch."""
    cwd: str | None = None
    parent_session: SessionId | None = None
    is_seeded: bool = False
    delegation_depth: int = 0
    origin: str | None = None
    """`subagent` for a child that an agent delegated to; absent for a person's session."""
    agent_preset: str | None = None
    """The preset the session started with; the `agentPreset` projection says what it runs now."""
