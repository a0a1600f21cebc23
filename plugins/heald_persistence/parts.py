"""The parts of a log that is read, taken to the event loop some at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import ClassVar

import attrs

from heald_persistence.sieve import Part


@attrs.define
class Parts:
    """Parts of a log, some at a time: a thread for each would cost more than they do."""

    AT_ONCE: ClassVar = 4

    _parts: Iterator[Part]
    _count: int
    _read: list[Part] = attrs.field(factory=list, init=False)
    _ended: bool = attrs.field(default=False, init=False)

    @property
    def are_due(self) -> bool:
        """Whether there is nothing to take before some are read."""
        return not self._read and not self._ended

    def read_on(self) -> None:
        """Read the next few; blocks."""
        self._read = [*itertools.islice(self._parts, self._count)]
        self._ended = len(self._read) < self._count
        self._count = self.AT_ONCE

    def take(self) -> list[Part]:
        """Return what was read since the last time; nothing at the end."""
        taken, self._read = self._read, []
        return taken
