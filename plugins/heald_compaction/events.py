"""The events of compaction; the summary itself is the conversation's `history/summary`."""

from __future__ import annotations

import msgspec

from heald_session import EventType, Seq, Usage


class CompactionStarted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`compaction/started`: a summary is asked for; with what is before it, all of the request."""

    id: str
    """The id of the summary, if it comes to one."""
    model: str
    """Who is asked, as `adapter:model`."""
    first: Seq
    """Where the range of the surface begins that is to be replaced."""
    last: Seq
    """Where it ends; this too is replaced."""
    prompt: str
    """What the model is asked, after the messages of the range."""


class CompactionFailed(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`compaction/failed`: no summary came of it, and the model sees what it saw before."""

    id: str
    reason: str
    usage: Usage | None = None
    """What the request came to, if it was answered."""


COMPACTION_STARTED = EventType("compaction/started", CompactionStarted)
COMPACTION_FAILED = EventType("compaction/failed", CompactionFailed)
