"""What people type into a search, and what of a text it fits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Self

import attrs

from heald_query.search.places import Place, Spelling, places
from heald_query.search.words import parts_of, separate, split, words_of

_MOST = 100
"""How many words and phrases of what was typed are looked for; people paste whole files."""
_LONGEST = 200
"""How many words of a phrase are."""

_QUOTES = str.maketrans("“”„‟«»", '""""""')
_CHUNK = re.compile(r'"([^"]*)"|([^\s"]+)')


@attrs.frozen
class Phrase:
    """Words that stand together in this order, written in one way or the other."""

    spellings: tuple[tuple[str, ...], ...]
    """The words as they were typed, then with identifiers in their parts if they have any."""

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Read a word as it was typed, or what stood in quotes; None if no word is in it."""
        words = separate(words_of(_printable(text)))[:_LONGEST]
        if not any(word[0].isalnum() or not word.isascii() for word in words):
            return None
        whole = tuple(words)
        parts = tuple(part for word in words for part in _parts(word))
        return cls((whole,) if parts == whole else (whole, parts))

    @property
    def expression(self) -> str:
        """What the index is asked for."""
        spelled = [f'"{" ".join(words)}"' for words in self.spellings]
        return spelled[0] if len(spelled) == 1 else f"({' OR '.join(spelled)})"


@attrs.frozen
class Typed:
    """All that is to be in a text, in any order."""

    phrases: tuple[Phrase, ...]
    _spellings: tuple[tuple[Spelling, ...], ...]
    """Those of each phrase, as texts are looked through for them."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what a person typed: every text is one, and there are no operators but quotes."""
        found: dict[Phrase, None] = {}
        for chunk in _chunks(text):
            if (phrase := Phrase.of(chunk)) is not None:
                found[phrase] = None
            if len(found) == _MOST:
                break
        spellings = (tuple(map(Spelling.of, phrase.spellings)) for phrase in found)
        return cls(tuple(found), tuple(spellings))

    @property
    def expression(self) -> str | None:
        """What the index is asked for; None if nothing was typed that has words."""
        return " AND ".join(phrase.expression for phrase in self.phrases) or None

    @property
    def has_phrases(self) -> bool:
        """Whether any words must stand together, as those of an identifier do."""
        return any(len(words) > 1 for phrase in self.phrases for words in phrase.spellings)

    def places(self, text: str, most: int) -> Sequence[Place]:
        """Return where phrases begin and end in a text, and which; the longest at each place.

        Of many phrases only the first `most` are looked for.
        """
        return places(text, self._spellings[:most])


def _chunks(text: str) -> Iterator[str]:
    """Yield what is in quotes, and every word that is not; a quote without a pair is none."""
    text = text.translate(_QUOTES)
    if text.count('"') % 2:
        before, _, after = text.rpartition('"')
        text = f"{before} {after}"
    for quoted, word in _CHUNK.findall(text):
        yield quoted or word


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _parts(word: str) -> list[str]:
    return split(word) if parts_of(word) else [word]
