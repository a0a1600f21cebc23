"""Session logs of the reference system: concatenated zstd frames of JSON lines.

The first line is the header. A log whose last write is torn is taken as far as it is whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from heald_session import FORMAT_VERSION, Header, SessionId
from heald_transfer.arrivals import Arrival, Unfit, arrival
from heald_transfer.lines import Lines
from heald_transfer.reference_lines import events_of
from heald_transfer.translation import Translation

SUFFIX = ".jsonl.zstd"
"""How the reference system names its logs."""

_VERSION = 0


class ReferenceHeader(msgspec.Struct, frozen=True, rename="camel"):
    """The first line of a log."""

    type: str
    version: int
    id: str
    created_at: int
    cwd: str | None = None
    parent_session: str | None = None
    seed_length: int = 0
    origin: str | None = None
    delegation_depth: int = 0
    agent_preset: str | None = None


def is_reference(line: bytes) -> bool:
    """Say whether a file whose first line this is may be a log of the reference system."""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return isinstance(found, dict) and found.get("type") == "session" and "createdAt" in found


def arrivals(first: bytes, lines: Lines) -> Iterator[Arrival]:
    """Yield the one session of a log; raises `Unfit` if it is not whole but for a torn end."""
    try:
        facts = msgspec.json.decode(first, type=ReferenceHeader)
    except msgspec.MsgspecError as error:
        raise Unfit(f"its header cannot be read ({error})") from error
    if facts.version != _VERSION:
        raise Unfit(f"it is of version {facts.version}, and only {_VERSION} is known")
    translation = Translation()
    for line in lines:
        _take(line, translation)
    events = translation.events
    notes = translation.notes()
    if lines.torn:
        notes = (f"its last write is torn: the {len(events)} events before it are kept", *notes)
    yield arrival(_header(facts), facts.seed_length, events, notes)


def _take(line: bytes, translation: Translation) -> None:
    end = len(translation.events)
    for n, event in enumerate(events_of(line, end)):
        if event.seq != end + n:
            raise Unfit(f"it has event {event.seq} where {end + n} should be")
        translation.take(event)


def _header(facts: ReferenceHeader) -> Header:
    parent = facts.parent_session
    return Header(
        version=FORMAT_VERSION,
        id=SessionId(facts.id),
        log_id="",
        created_at=facts.created_at,
        cwd=facts.cwd,
        parent_session=None if parent is None else SessionId(parent),
        delegation_depth=facts.delegation_depth,
        origin=facts.origin,
        agent_preset=facts.agent_preset,
    )
