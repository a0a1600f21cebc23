"""Finds the end of what a tail holds, and tells a torn end from damage."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import attrs

from heald_persistence import disk
from heald_persistence.errors import FormatTooNew, SessionDamaged
from heald_persistence.layout import Facts, Place
from heald_persistence.lines import BadLine, event_of, header_of, starts_intact
from heald_session import LogOffset


@attrs.frozen
class Recovered:
    """A tail's whole lines, and what came after them."""

    good: bytes
    torn: bytes
    end: LogOffset


def check_header(line: bytes, facts: Facts) -> None:
    """Check a tail's first line; raise `SessionDamaged` or `FormatTooNew`."""
    session = facts.header.id
    try:
        header = header_of(line)
    except BadLine as error:
        raise SessionDamaged(session, f"the first line of tail.jsonl: {error}") from error
    if header.log_id != facts.header.log_id:
        raise SessionDamaged(session, "tail.jsonl belongs to another log")
    if header.base or header.sealed:
        raise FormatTooNew(session, facts.header.version, "a sealed log")


def recover(data: bytes, facts: Facts) -> Recovered:
    """Check every line of a tail; raise `SessionDamaged` if a wrong one has others after it."""
    begin = data.find(b"\n") + 1
    check_header(data[:begin] if begin else data, facts)
    end = 0
    for start, stop in _lines(data, begin):
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
    return Recovered(data[:begin], data[begin:], LogOffset(end))


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


def _lines(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Yield where each line begins and ends; the last may lack its newline."""
    while start < len(data):
        stop = data.find(b"\n", start) + 1 or len(data)
        yield start, stop
        start = stop
