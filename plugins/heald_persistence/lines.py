"""Lines of a log: one JSON object each, with a checksum as its last member."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from heald_persistence.blobs import Citing
from heald_session import Event

T = TypeVar("T")

_SUM = b',"sum":"%08x"}'
_SUM_BEGINS = _SUM[: _SUM.index(b"%")]
_ENDING = len(_SUM % 0)


class BadLine(ValueError):
    """A line is not what was written, or is not what this code can read."""

    def __init__(self, reason: str, *, intact: bool = False) -> None:
        super().__init__(reason)
        self.intact = intact
        """Whether the line's checksum is right, so that it was written so."""


class TailHeader(msgspec.Struct, frozen=True):
    """The first line of a tail."""

    log_id: str
    base: int = 0
    """The offset of the tail's first event."""
    sealed: int = 0
    """How many bytes of sealed log come before the tail."""


def line_of(value: msgspec.Struct) -> bytes:
    """Encode an event, a header or a zone map as a line."""
    body = msgspec.json.encode(value)[:-1]
    return body + _SUM % zlib.crc32(body) + b"\n"


_event = msgspec.json.Decoder(Event)
_citing = msgspec.json.Decoder(Citing)
_header = msgspec.json.Decoder(TailHeader)


def event_of(line: bytes) -> Event:
    """Decode an event from a whole line; its data stays encoded. Raises `BadLine`."""
    check(line)
    try:
        return _event_in(line)
    except msgspec.MsgspecError as error:
        raise BadLine(str(error), intact=True) from error


def events_of(lines: bytes) -> list[Event]:
    """Decode events from lines whose bytes are known to be right; raises `msgspec.MsgspecError`."""
    try:
        return _event.decode_lines(lines)
    except msgspec.ValidationError:  # some of them may cite their data
        return [_event_in(lines[begin:end]) for begin, end in places_of(lines)]


def whole_events_of(lines: bytes, first: int) -> list[Event] | None:
    """Decode events that go on from a seq, all at once; None if anything is wrong with any."""
    *each, rest = lines.split(b"\n")
    if rest or not are_intact(each):
        return None
    try:
        events = events_of(lines)
    except msgspec.MsgspecError:
        return None
    return events if [e.seq for e in events] == [*range(first, first + len(each))] else None


def _event_in(line: bytes) -> Event:
    try:
        return _event.decode(line)
    except msgspec.ValidationError as error:
        try:
            return _citing.decode(line)
        except msgspec.MsgspecError:
            raise error from None


def plainly(name: str) -> bytes:
    """Return the bytes by which a type's name is found in a line."""
    return msgspec.json.encode(name)


def header_of(line: bytes) -> TailHeader:
    """Decode a tail's header from a whole line; raises `BadLine`."""
    return decoded(line, _header)


def decoded(line: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode a whole line as whatever it is; raises `BadLine`."""
    check(line)
    try:
        return decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise BadLine(str(error), intact=True) from error


def check(line: bytes) -> None:
    """Raise `BadLine` if a line is not what was written."""
    if not line.endswith(b"\n"):
        raise BadLine("it is cut short")
    if not are_intact([line[:-1]]):
        raise BadLine("its checksum is wrong")


def are_intact(lines: Sequence[bytes]) -> bool:
    """Say whether the checksums of lines, here without their newlines, are right."""
    said = [line[-_ENDING:] for line in lines]
    return said == [_SUM % zlib.crc32(line[:-_ENDING]) for line in lines]


def places_of(data: bytes, start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield where each line begins and ends; the last may lack its newline."""
    while start < len(data):
        stop = data.find(b"\n", start) + 1 or len(data)
        yield start, stop
        start = stop


def starts_intact(data: bytes) -> bool:
    """Say whether data is a line whose checksum is right, but for the newline that should follow.

    A write that was torn has nothing after such a line.
    """
    place = data.find(_SUM_BEGINS)
    while place >= 0:
        end = place + _ENDING
        if len(data) > end and are_intact([data[:end]]):
            return True
        place = data.find(_SUM_BEGINS, place + 1)
    return False
