"""Finds the end of what a tail holds, and tells a torn end from damage."""

from __future__ import annotations

import secrets

import attrs

from heald_persistence import disk
from heald_persistence.errors import SessionDamaged
from heald_persistence.layout import Facts, Place
from heald_persistence.lines import (
    BadLine,
    TailHeader,
    event_of,
    header_of,
    places_of,
    starts_intact,
)
from heald_session import LogOffset

FOREIGN = "it belongs to another log"


@attrs.frozen
class Recovered:
    """A tail's whole lines, and what came after them."""

    header: TailHeader
    good: bytes
    torn: bytes
    end: LogOffset


def check_header(line: bytes, facts: Facts) -> TailHeader:
    """Check a tail's first line; raise `BadLine` for one that cannot be this log's."""
    header = header_of(line)
    if header.log_id != facts.header.log_id:
        raise BadLine(FOREIGN)
    if header.base < 0 or header.sealed < 0 or (header.base > 0) != (header.sealed > 0):
        raise BadLine("it makes no sense")
    return header


def recover(data: bytes, facts: Facts) -> Recovered:
    """Check every line of a tail; raise `SessionDamaged` if a wrong one has others after it."""
    begin = data.find(b"\n") + 1
    try:
        header = check_header(data[:begin] if begin else data, facts)
    except BadLine as error:
        reason = f"the first line of tail.jsonl: {error}"
        raise SessionDamaged(facts.header.id, reason) from error
    end = header.base
    for start, stop in places_of(data, begin):
        try:
            seq = event_of(data[start:stop]).seq
        except BadLine as error:
            if error.intact or not is_torn(data[start:]):
                raise damaged(facts, end, str(error)) from error
            break
        if seq != end:
            raise damaged(facts, end, f"it has seq {seq}")
        begin, end = stop, end + 1
    check_cut(facts, end)
    return Recovered(header, data[:begin], data[begin:], LogOffset(end))


def check_cut(facts: Facts, end: int) -> None:
    """Refuse a log that has lost inherited events; they were stored with the first bytes."""
    if facts.cut > end:
        raise SessionDamaged(facts.header.id, f"{end} of {facts.cut} inherited events are there")


def damaged(facts: Facts, seq: int, reason: str) -> SessionDamaged:
    """Make the error for a wrong line."""
    return SessionDamaged(facts.header.id, f"event {seq}: {reason}")


def is_torn(rest: bytes) -> bool:
    """Say whether bytes from a wrong line on are one torn write, with or without zeros after it."""
    rest = rest.rstrip(b"\0")
    return b"\n" not in rest[:-1] and not starts_intact(rest)


def quarantine(place: Place, torn: bytes, now: int) -> str:
    """Keep bytes that were never acknowledged; return where."""
    if not place.quarantine.exists():
        disk.make_directory(place.quarantine)
        disk.sync_directory(place.path)
    kept = place.quarantine / f"tail-{now}-{secrets.token_hex(4)}"
    disk.write_file(kept, torn)
    disk.sync_directory(place.quarantine)
    return str(kept)
