"""Cuts out of a text what shows why it was found."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Self

import attrs

from heald_query.search.contracts import Snippet
from heald_query.search.places import Place
from heald_query.search.typed_text import Typed

WIDTH = 160
"""About how many characters a snippet has."""
_LEAD = 40
"""How many of them are before the first word that was found."""
_SLACK = 16
"""How many characters a snippet gives up so that it cuts no word."""
_CLOSE = 30
"""How many places may be in one snippet."""
_PART = 64 * 1024
"""How many characters of a text are looked at together."""
_OVERLAP = 2 * WIDTH
"""How many of them the next part has too, so that what is on the border is seen whole."""
_DEEP = 16 * _PART
"""How far into a text is looked."""
_PAIRS = 2_000_000
"""How many characters are looked at for all phrases together, if it leaves enough of these."""
_ENOUGH = 8
"""How many phrases of many are looked for however large a text is."""

_SPACE = re.compile(r"\s+")


@attrs.frozen
class _Part:
    """A part of a text that is looked through at once, and what was found in it."""

    text: str
    is_first: bool
    is_last: bool
    places: Sequence[Place]

    @classmethod
    def of(cls, text: str, at: int, typed: Typed, most: int) -> Self:
        """Look through the part of a text that begins at a place, for so many phrases."""
        end = at + _PART
        part = text[at:end]
        if not part.isascii():
            part = unicodedata.normalize("NFC", part)
        return cls(part, at == 0, end >= len(text), typed.places(part, most))


def snippet(text: str, typed: Typed) -> Snippet:
    """Return the first part of a text that has the most of what was typed."""
    part = _richest(text, typed)
    begin, end = _window(part.text, _densest(part.places))
    marks = [(max(a, begin), min(b, end)) for a, b, _ in part.places if a < end and b > begin]
    return _one_line(part, begin, end, marks)


def _richest(text: str, typed: Typed) -> _Part:
    """Return the first part that has the most phrases, looking no further than one with all."""
    wanted = min(len(typed.phrases), max(_ENOUGH, _PAIRS // max(1, len(text))))
    best = _Part.of(text, 0, typed, wanted)
    most = _phrases(best.places)
    for at in range(_PART - _OVERLAP, min(len(text) - _OVERLAP, _DEEP), _PART - _OVERLAP):
        if most == wanted:
            break
        part = _Part.of(text, at, typed, wanted)
        if (phrases := _phrases(part.places)) > most:
            best, most = part, phrases
    return best


def _densest(places: Sequence[Place]) -> int:
    """Return where the places begin that have the most phrases within a snippet's width."""
    best, most = 0, 0
    all_of_them = _phrases(places)
    for n, (start, _, _) in enumerate(places):
        near = _phrases([p for p in places[n : n + _CLOSE] if p[1] <= start + WIDTH - _LEAD])
        if near > most:
            best, most = start, near
        if most == all_of_them:
            break
    return best


def _phrases(places: Sequence[Place]) -> int:
    """Return how many phrases have a place."""
    return len({which for _, _, which in places})


def _window(text: str, start: int) -> tuple[int, int]:
    if len(text) <= WIDTH:
        return _stripped(text, 0, len(text))
    begin = max(0, min(start - _LEAD, len(text) - WIDTH))
    end = min(len(text), begin + WIDTH)
    if begin and (space := _SPACE.search(text, begin, min(begin + _SLACK, start))):
        begin = space.end()
    if end < len(text) and (space := _SPACE.search(text[end - _SLACK : end])):
        end -= _SLACK - space.start()
    return _stripped(text, begin, end)


def _stripped(text: str, begin: int, end: int) -> tuple[int, int]:
    part = text[begin:end]
    return begin + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def _one_line(part: _Part, begin: int, end: int, marks: Sequence[tuple[int, int]]) -> Snippet:
    text = part.text
    line = "" if part.is_first and not text[:begin].strip() else "…"
    moved: list[tuple[int, int]] = []
    for first, last in marks:
        line += _SPACE.sub(" ", text[begin:first])
        at = len(line)
        line += _SPACE.sub(" ", text[first:last])
        moved.append((at, len(line)))
        begin = last
    line += _SPACE.sub(" ", text[begin:end])
    goes_on = not part.is_last or text[end:].strip()
    return Snippet(line + ("…" if goes_on else ""), tuple(moved))
