"""Where things are in a session's log: `Seq` names an event, `LogOffset` a gap between events."""

from __future__ import annotations

from typing import NewType

SessionId = NewType("SessionId", str)
"""Names a session's slot; `Header.log_id` names the lifecycle that fills it."""

Seq = NewType("Seq", int)
"""The index of an event: 0-based and contiguous."""

LogOffset = NewType("LogOffset", int)
"""A gap between events, from 0 to the length of the log; a cut is one, and so is a watermark."""


def before(seq: Seq) -> LogOffset:
    """Return the gap before an event."""
    return LogOffset(seq)


def after(seq: Seq) -> LogOffset:
    """Return the gap after an event: how many events there are up to and including it."""
    return LogOffset(seq + 1)
