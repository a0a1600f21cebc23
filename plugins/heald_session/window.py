"""The hot window: the newest part of a log, which is in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from heald_session.events import Event
from heald_session.positions import LogOffset, Seq

EVENT_BYTES: Final = 400
"""About what an event takes in memory besides its data."""


@attrs.frozen
class WindowLimits:
    """How much of a log stays in memory once nobody needs more of it."""

    events: int
    bytes: int


@attrs.define(eq=False)
class Window:
    """Events from `start` to the `end` of a log.

    Shrinking makes more room than it must, so that it is rare and appending stays cheap.
    """

    limits: WindowLimits
    end: LogOffset = LogOffset(0)
    """The length of the log."""
    is_over: bool = False
    """Whether there is more than the limits allow."""
    _events: list[Event] = attrs.field(factory=list)
    _bytes: int = 0

    @property
    def start(self) -> LogOffset:
        """How many events are no longer in memory."""
        return LogOffset(self.end - len(self._events))

    @property
    def next_seq(self) -> Seq:
        """The seq of the event to come."""
        return Seq(self.end)

    def add(self, event: Event, size: int) -> None:
        """Take the next event of the log, and how many bytes of data it has."""
        self._events.append(event)
        self.end = LogOffset(self.end + 1)
        self._bytes += EVENT_BYTES + size
        if self._bytes > self.limits.bytes or len(self._events) > self.limits.events:
            self.is_over = True

    def extend(self, events: Sequence[Event]) -> None:
        """Take the next events of the log."""
        self._events.extend(events)
        self.end = LogOffset(self.end + len(events))
        self._bytes += sum(map(_size, events))
        self._judge()

    def part(self, start: LogOffset, stop: LogOffset | None = None) -> tuple[Event, ...]:
        """Return the events between two offsets; raises `IndexError` for what is not here."""
        begin = self.start
        if start < begin:
            raise IndexError(f"{start} is before {begin}, where memory begins")
        end = None if stop is None else max(stop - begin, 0)
        return tuple(self._events[start - begin : end])

    def shrink(self, needed: LogOffset) -> None:
        """Drop the oldest events until a quarter of each limit is free, but none from `needed` on.

        The newest event stays whatever it takes.
        """
        spare = max(min(needed - self.start, len(self._events) - 1), 0)
        count = min(spare, max(len(self._events) - self.limits.events * 3 // 4, 0))
        size = sum(map(_size, self._events[:count]))
        while count < spare and self._bytes - size > self.limits.bytes * 3 // 4:
            size += _size(self._events[count])
            count += 1
        del self._events[:count]
        self._bytes -= size
        self._judge()

    def _judge(self) -> None:
        self.is_over = self._bytes > self.limits.bytes or len(self._events) > self.limits.events


def _size(event: Event) -> int:
    return EVENT_BYTES + len(memoryview(event.encoded))
