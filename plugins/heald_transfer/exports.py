r"""The file that `heald sessions export` makes and `heald sessions import` takes.

`docs/reference/export-format.md` specifies it for readers in other languages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import msgspec

from heald_session import FORMAT_VERSION, Event, Header
from heald_transfer.arrivals import Arrival, Unfit, arrival
from heald_transfer.errors import EventTooLarge
from heald_transfer.frames import LIMIT, compress
from heald_transfer.lines import Lines

EXPORT_VERSION = 1
SUFFIX = ".heald.zst"
"""How exports are found in a directory; one that is named may be called anything."""

_FRAME = 1024 * 1024
"""Bytes of lines that are compressed together."""


class Manifest(msgspec.Struct, frozen=True):
    """The first line: what the file is, and how many sessions follow."""

    heald_export: int
    sessions: int


class SessionLine(msgspec.Struct, frozen=True):
    """The line before a session's events; `events` of them follow."""

    session: Header
    inherited_event_count: int
    events: int


_manifest = msgspec.json.Decoder(Manifest)
_session = msgspec.json.Decoder(SessionLine)
_event = msgspec.json.Decoder(Event)


async def frames_of(
    header: Header, cut: int, count: int, events: AsyncIterator[Event]
) -> AsyncIterator[bytes]:
    """Yield one session as compressed frames, without holding more than one of them.

    Raises `EventTooLarge`.
    """
    lines = [msgspec.json.encode(SessionLine(header, cut, count))]
    size = 0
    async for event in events:
        line = msgspec.json.encode(event)
        if len(line) >= LIMIT - _FRAME:
            raise EventTooLarge(header.id, event.seq, len(line))
        lines.append(line)
        size += len(line)
        if size >= _FRAME:
            yield _packed(lines)
            lines, size = [], 0
    if lines:
        yield _packed(lines)


def manifest(sessions: int) -> bytes:
    """Return the frame that an export begins with."""
    return _packed([msgspec.json.encode(Manifest(EXPORT_VERSION, sessions))])


def is_export(line: bytes) -> bool:
    """Say whether a file whose first line this is was made by an export of any version."""
    return line.startswith(b'{"heald_export":')


def arrivals(first: bytes, lines: Lines) -> Iterator[Arrival]:
    """Yield the sessions of an export; raises `Unfit` at the first that is not whole."""
    try:
        facts = _manifest.decode(first)
    except msgspec.MsgspecError as error:
        raise Unfit(f"its manifest cannot be read ({error})") from error
    if facts.heald_export > EXPORT_VERSION:
        raise Unfit(f"it is of export format {facts.heald_export} and needs a newer Heald")
    for number in range(facts.sessions):
        line = lines.next()
        if line is None:
            raise Unfit(f"it is cut short: {number} of {facts.sessions} sessions are there")
        yield _one(line, lines)
    if lines.next() is not None:
        raise Unfit("it has more lines than it says")


def _one(line: bytes, lines: Lines) -> Arrival:
    try:
        facts = _session.decode(line)
    except msgspec.MsgspecError as error:
        raise Unfit(f"a session's first line cannot be read ({error})") from error
    id_, version = facts.session.id, facts.session.version
    if version > FORMAT_VERSION:
        raise Unfit(f"session {id_!r} has format {version} and needs a newer Heald")
    events: list[Event] = []
    for seq in range(facts.events):
        found = lines.next()
        if found is None or lines.torn:
            raise Unfit(f"session {id_!r} is cut short: {seq} of {facts.events} events are there")
        events.append(_checked(found, seq, id_, events))
    return arrival(facts.session, facts.inherited_event_count, events)


def _checked(line: bytes, seq: int, id: str, before: list[Event]) -> Event:  # noqa: A002
    try:
        event = _event.decode(line)
    except msgspec.MsgspecError as error:
        raise Unfit(f"event {seq} of session {id!r} cannot be read ({error})") from error
    if event.seq != seq:
        raise Unfit(f"session {id!r} has event {event.seq} where {seq} should be")
    if before and event.time < before[-1].time:
        raise Unfit(f"event {seq} of session {id!r} is earlier than the one before it")
    return event


def _packed(lines: list[bytes]) -> bytes:
    return compress(b"\n".join(lines) + b"\n")
