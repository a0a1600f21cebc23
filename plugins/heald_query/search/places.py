"""Where in a text stands what was typed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import attrs

from heald_query.search.words import fold, is_edge

Place = tuple[int, int, int]
"""Where something begins and ends, and which of the phrases it is."""

_BETWEEN = 160
"""How many characters may be between two words of a phrase that a snippet is to show."""
_TRIES = 5000
"""At how many places of their first words phrases are tried: letters stand everywhere."""
_FEWEST = 200
"""At how many each of many phrases is."""
_MOST = 1000
"""How many places of all phrases are told."""


@attrs.frozen
class Spelling:
    """Words in a row, as a text that `fold` returned has them."""

    first: str
    others: re.Pattern[str] | None
    """What follows the first word; None if nothing does."""

    @classmethod
    def of(cls, words: Sequence[str]) -> Spelling:
        """Read the words of a phrase.

        Pictures are words and no letters: without the atomic groups each of them could stand for
        either, and a row of them would be tried in every way.
        """
        first, *others = map(fold, words)
        pattern = "".join(rf"(?>[\W_]{{0,{_BETWEEN}}}?{re.escape(word)})" for word in others)
        return cls(first, re.compile(pattern) if others else None)

    def places(self, text: str, folded: str, tries: int) -> Iterator[tuple[int, int]]:
        """Yield where the words begin and end.

        The first word is looked for as it is, which costs a hundredth of what any pattern does.
        """
        for start in islice(_every(self.first, folded), tries):
            if is_edge(text, start):
                end = self._end(folded, start + len(self.first))
                if end is not None and is_edge(text, end):
                    yield start, end

    def _end(self, folded: str, at: int) -> int | None:
        if self.others is None:
            return at
        match = self.others.match(folded, at)
        return None if match is None else match.end()


def places(text: str, phrases: Sequence[Sequence[Spelling]]) -> list[Place]:
    """Return where phrases begin and end in a text, the longest at each place."""
    folded, tries = fold(text), max(_FEWEST, _TRIES // max(1, len(phrases)))
    found = [
        (start, end, which)
        for which, spellings in enumerate(phrases)
        for spelling in spellings
        for start, end in spelling.places(text, folded, tries)
    ]
    found.sort(key=lambda place: (place[0], -place[1]))
    return list(islice(_apart(found), _MOST))


def _every(word: str, folded: str) -> Iterator[int]:
    at = folded.find(word)
    while at >= 0:
        yield at
        at = folded.find(word, at + 1)


def _apart(found: Sequence[Place]) -> Iterator[Place]:
    """Yield the places that begin behind the one before."""
    last = 0
    for place in found:
        if place[0] >= last:
            last = place[1]
            yield place
