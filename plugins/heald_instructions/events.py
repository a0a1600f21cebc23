"""The event that records what an agent read."""

from __future__ import annotations

import msgspec

from heald_session import EventType


class InstructionsRead(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`instructions/read`: a file says something else than when the session last read it.

    What it says is in the `turn/context` that follows.
    """

    path: str
    digest: str | None
    """SHA-256 of what was read, in hexadecimal; null if there is nothing to read any more."""
    size: int = 0
    """Of the file, in bytes."""
    truncated: bool = False
    """Whether the model sees only the beginning."""
    problem: str | None = None
    """Why a file that is there was not read."""


INSTRUCTIONS_READ = EventType("instructions/read", InstructionsRead)
