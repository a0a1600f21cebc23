"""The numbers of documents: they say when, by whom and where a text was written.

So the index puts what it finds in order and leaves out what is not wanted without looking anything
up: that is most of what a search costs.
"""

from __future__ import annotations

from collections.abc import Callable

from heald_query.search.contracts import Role

ROLES: tuple[Role, ...] = ("user", "assistant", "tool")
ROLE = 0b0011
"""The bits that say which of `ROLES` wrote it."""
INHERITED = 0b0100
SUBAGENT = 0b1000
"""The bit of every text of a subagent's session."""

_FLAG_BITS = 4
_COUNT_BITS = 17
_TIME_BITS = 42
_COUNTS = 1 << _COUNT_BITS
_LATEST = (1 << _TIME_BITS) - (1 << 20)
"""Later times, of a clock that was wrong, count as this one; what is above is room for theirs."""


def first_of(time: int) -> int:
    """Return the least number of what was written at or after a time, in milliseconds."""
    return min(max(time, 0), _LATEST) << (_COUNT_BITS + _FLAG_BITS)


class Numbers:
    """Gives out numbers that no document has, in the order of time.

    Of what was written in the same millisecond the one that is numbered last counts as later; more
    than there is room for overflow into the next.
    """

    def __init__(self, last_between: Callable[[int, int], int | None]) -> None:
        self._last_between = last_between
        self._taken: dict[int, int] = {}

    def take(self, time: int, flags: int) -> int:
        """Return a new number."""
        base = first_of(time)
        while (count := self._count(base)) == _COUNTS:
            base += _COUNTS << _FLAG_BITS
        self._taken[base] = count + 1
        return base | (count << _FLAG_BITS) | flags

    def _count(self, base: int) -> int:
        """Return how many numbers of a millisecond are taken."""
        if (count := self._taken.get(base)) is not None:
            return count
        last = self._last_between(base, base + (_COUNTS << _FLAG_BITS))
        return 0 if last is None else ((last - base) >> _FLAG_BITS) + 1
