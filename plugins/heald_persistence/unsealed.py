"""The tail of a log, for reading: as it was at one moment, in blocks of lines."""

from __future__ import annotations

from collections.abc import Iterator

from heald_persistence.contracts import Damage
from heald_persistence.layout import Facts
from heald_persistence.lines import (
    BadLine,
    TailHeader,
    event_of,
    places_of,
    whole_events_of,
)
from heald_persistence.picking import chosen
from heald_persistence.recovery import FOREIGN, check_header, is_torn
from heald_persistence.sieve import Part, Sieve, sift
from heald_persistence.source import Source
from heald_session import LogOffset

BATCH_BYTES = 256 * 1024
_HEADER_BYTES = 64 * 1024
_LOOK_BACK = 64 * 1024
_AT_HAND = 320 * 1024
"""A tail that is no longer is read once: one that is sealed in time is not."""


class Unsealed:
    """What was in a tail when it was opened; what came after its last whole line is not there.

    Every method blocks.
    """

    def __init__(self, source: Source, facts: Facts) -> None:
        self._source = source
        self._whole = source.at(0, source.size) if source.size <= _AT_HAND else None
        line, newline, _ = self._at(0, min(_HEADER_BYTES, source.size)).partition(b"\n")
        self._begin = len(line + newline)
        self.header: TailHeader | None = None
        self.fault: str | None = None
        """What is wrong with the header, if anything is."""
        try:
            self.header = check_header(line + newline, facts)
        except BadLine as error:
            self.fault = str(error)
        self._ends_well = True
        """Whether there is nothing after the last event but what was never acknowledged."""
        self._stop, last = self._find_end(source.size)
        self.base = self._first_seq() if self.header is None else self.header.base
        """The offset of the first event; None if that cannot be told."""
        self.end = self.base if last is None else last + 1

    def parts(self, start: int, stop: int | None, wanted: frozenset[str] | None) -> Iterator[Part]:
        """Yield the events of a range and of some types, with damage."""
        if self.base is None or (stop is not None and stop <= self.base):
            return
        if self._ends_well and self.end is not None and max(start, self.base) >= self.end:
            return
        self._decoded()
        sieve = Sieve(self._source.name, self.base)
        place = self._begin
        while place < self._stop and (stop is None or sieve.next < stop):
            block = self._block(place)
            for part in _parts_of(block, place, sieve):
                some = part if isinstance(part, Damage) else chosen(part, start, stop, wanted)
                if some:
                    yield some
            place += len(block)
        if place >= self._stop and (damage := sieve.end(place)) is not None:
            yield damage

    def _at(self, place: int, count: int) -> bytes:
        if self._whole is None:
            return self._source.at(place, count)
        return self._whole[place : place + count]

    def _decoded(self) -> None:
        counts = self._source.counts
        counts.frames_decoded += not counts.tail_decoded
        counts.tail_decoded = True

    def _first_seq(self) -> int | None:
        """Find the first good event where the header does not say it."""
        if self.fault == FOREIGN:
            return None
        place = self._begin
        while place < self._stop:
            for offset, line in _lines(self._block(place), place):
                try:
                    return event_of(line).seq
                except BadLine:
                    place = offset + len(line)
        return None

    def _block(self, place: int) -> bytes:
        """Read whole lines from a place on: a block of them, or one that is longer than a block."""
        size = BATCH_BYTES
        while True:
            data = self._at(place, min(size, self._stop - place))
            whole = data.rfind(b"\n") + 1
            if place + size >= self._stop:
                whole = len(data)
            if whole:
                break
            size *= 2
        return data[:whole]

    def _find_end(self, size: int) -> tuple[int, int | None]:
        """Return where the last whole line ends, and the seq of the last good one."""
        span = _LOOK_BACK
        while True:
            begin = max(self._begin, size - span)
            data = self._at(begin, size - begin)
            skip = 0 if begin == self._begin else data.find(b"\n") + 1
            if begin == self._begin or skip:
                found = self._last_good(data[skip:], size)
                if found is not None:
                    return found
            if begin == self._begin:
                return self._without_events(data, size), None
            span *= 4

    def _without_events(self, data: bytes, size: int) -> int:
        if not data or is_torn(data):
            return self._begin
        self._ends_well = False
        return size

    def _last_good(self, data: bytes, size: int) -> tuple[int, int] | None:
        end, intact = data.rfind(b"\n") + 1, False
        while end:
            begin = data.rfind(b"\n", 0, end - 1) + 1
            try:
                seq = event_of(data[begin:end]).seq
            except BadLine as error:
                intact = intact or error.intact
                end = begin
                continue
            rest = data[end:]
            if rest and (intact or not is_torn(rest)):
                self._ends_well = False
                return size, seq
            return size - len(rest), seq
        return None


def header_damage(reason: str, first: int, base: int | None) -> Damage:
    """Describe a tail's header that does not say where the tail begins."""
    count = None if base is None else max(0, base - first)
    return Damage(
        kind="tail_header",
        file="tail.jsonl",
        offset=0,
        first=LogOffset(first),
        count=count,
        types=None,
        reason=f"its first line: {reason}",
    )


def _parts_of(block: bytes, place: int, sieve: Sieve) -> Iterator[Part]:
    """Yield the events of whole lines, one by one only where something is wrong."""
    events = whole_events_of(block, sieve.next) if sieve.is_clean else None
    if events is None:
        yield from sift(sieve, _lines(block, place))
    else:
        sieve.next += len(events)
        yield events


def _lines(block: bytes, place: int) -> Iterator[tuple[int, bytes]]:
    return ((place + begin, block[begin:end]) for begin, end in places_of(block))
