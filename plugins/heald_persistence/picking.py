"""Takes the wanted events out of a whole frame, where they are few decoding no others."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from heald_persistence.frames import BadFrame, ZoneMap
from heald_persistence.lines import events_of, plainly
from heald_session import Event

_FEW = 8
"""Above one line in so many, decoding all of them at once is quicker."""


def events_in(raw: bytes, zone: ZoneMap, wanted: frozenset[str] | None) -> list[Event]:
    """Return the events of a whole frame, or at least those that are wanted."""
    few = None
    if wanted is not None and not zone.escaped:
        few = lines_naming(raw, wanted, zone.count)
    if few is None:
        return _checked(events_of(raw), zone)
    events = events_of(few)
    if not all(zone.first <= event.seq < zone.first + zone.count for event in events):
        raise BadFrame("it does not hold what its zone map says")
    return events


def chosen(
    events: list[Event], start: int, stop: int | None, wanted: frozenset[str] | None
) -> list[Event]:
    """Return the events that are wanted; a few do not keep the bytes of all."""
    if not events or (wanted is None and start <= events[0].seq and _ends(events, stop)):
        return events
    return [
        msgspec.structs.replace(event, encoded=event.encoded.copy())
        for event in events
        if (wanted is None or event.type in wanted)
        and start <= event.seq
        and (stop is None or event.seq < stop)
    ]


def lines_naming(raw: bytes, names: Collection[str], count: int) -> bytes | None:
    """Return every line of `raw`, which has `count`, that could be of one of these types.

    Lines that only mention a type are among them. None if they are not few.
    """
    starts: set[int] = set()
    for name in names:
        for start in _starts(raw, plainly(name)):
            starts.add(start)
            if len(starts) * _FEW > count:
                return None
    return b"".join(raw[start : raw.find(b"\n", start) + 1 or None] for start in sorted(starts))


def _starts(raw: bytes, name: bytes) -> Iterator[int]:
    """Yield where the lines begin that hold a name."""
    at = raw.find(name)
    while at >= 0:
        yield raw.rfind(b"\n", 0, at) + 1
        end = raw.find(b"\n", at)
        at = -1 if end < 0 else raw.find(name, end)


def _checked(events: list[Event], zone: ZoneMap) -> list[Event]:
    """Return events that are those which the zone map says; else raise `BadFrame`."""
    last = zone.first + zone.count - 1
    if len(events) != zone.count or (events[0].seq, events[-1].seq) != (zone.first, last):
        raise BadFrame("it does not hold what its zone map says")
    return events


def _ends(events: list[Event], stop: int | None) -> bool:
    return stop is None or events[-1].seq < stop
