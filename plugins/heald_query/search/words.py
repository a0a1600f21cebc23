"""How a text becomes words: the same for what is indexed, for what is typed, and for snippets."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from functools import cache

_APART = (
    (0x0E01, 0x0E4E),  # Thai
    (0x0E81, 0x0ECE),  # Lao
    (0x1000, 0x103F),  # Burmese
    (0x1780, 0x17D3),  # Khmer
    (0x2E80, 0x312F),  # radicals, kana, bopomofo
    (0x3131, 0x318E),  # Hangul letters
    (0x31A0, 0x31FF),
    (0x3400, 0x4DBF),  # ideographs
    (0x4E00, 0xA4CF),  # ideographs, Yi
    (0xAC00, 0xD7A3),  # Hangul syllables, which particles are glued to
    (0xF900, 0xFAFF),
    (0x16FE0, 0x1B2FF),
    (0x20000, 0x3FFFF),
)
"""Scripts that put no spaces between words: each of their characters is a word."""
_PICTURES = (
    (0x2139, 0x2139),
    (0x2190, 0x23FF),
    (0x25A0, 0x27BF),
    (0x2B00, 0x2BFF),
    (0x1F000, 0x1FAFF),
)
"""Where the symbols are that people type as pictures; others only draw boxes and bars."""
_BREAK = " \ue000 "
"""A word that no text has, so that no phrase goes on behind it."""
_MOST_PARTS = 8
"""What falls into more parts is no identifier but a checksum, or encoded data."""

_MIXED = re.compile(r"(?<![A-Za-z0-9])(?>[A-Z]?[a-z]++|[A-Z]++|[0-9]++)[A-Za-z0-9]++", re.ASCII)
"""A word of more than one part, when it is in ASCII."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_WORD = re.compile(r"[^\W_]{2,}")
_MARKED = "[\u0080-\u2e7f\ua4d0-\U0000ffff]"
"""What may have a mark, or change its length with its case; ideographs and pictures do not."""


class _Spacing(dict[int, str]):
    """What `str.translate` puts in a character's place; learned as characters are met."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _spaced(code)
        return found


class _Folded(dict[int, str]):
    """The one letter that the index takes a letter for; its own where that is several."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _base(chr(code))
        return found


class _Kinds(dict[int, str]):
    """The kind of a letter or digit, of which a part of an identifier has one only."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _kind(chr(code))
        return found


@cache
def _marked() -> re.Pattern[str]:
    return re.compile(_MARKED)  # so wide a set takes milliseconds, which few runs have to wait for


def _spaced(code: int) -> str:
    if _is_in(_APART, code):
        return f" {chr(code)} "
    category = unicodedata.category(chr(code))
    if category == "So":
        return f" {chr(code)} " if _is_in(_PICTURES, code) else " "
    if category in {"Co", "Cs", "Cc"} or unicodedata.name(chr(code), "").startswith("VARIATION"):
        return " "
    return chr(code)


def _is_in(ranges: Sequence[tuple[int, int]], code: int) -> bool:
    return any(first <= code <= last for first, last in ranges)


def _kind(character: str) -> str:
    """Return one character for each kind, as `_PARTS` has them where it can."""
    if not character.isalpha():
        return "0"
    script = unicodedata.name(character, "?").split(" ", 1)[0]
    if script == "LATIN" or character.isascii():
        return "A" if character.isupper() else "a"
    return chr(0xE000 + zlib.crc32(script.encode()) % 0x1000)


def _base(character: str) -> str:
    plain = unicodedata.normalize("NFKD", character)
    first = plain[0] if all(map(unicodedata.combining, plain[1:])) else character
    lower = first.lower()
    return lower if len(lower) == 1 else first


_SPACING = _Spacing()
_FOLDED = _Folded()
_KINDS = _Kinds()
_RUNS = re.compile(r"[A]+(?!a)|A?a+|A+|0+|([^Aa0])\1*")


def words_of(text: str) -> str:
    """Return a text with spaces around every character that is a word by itself.

    What else is a word is then told by the index: letters and digits that stand together.
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text).translate(_SPACING)


def parts_of(words: str) -> str:
    """Return the parts of the identifiers in what `words_of` returned, as more words.

    A word has parts where capitals follow small letters, where letters meet digits, and where one
    script meets another.
    """
    return _BREAK.join(" ".join(parts) for parts in _identifiers(words))


def _identifiers(words: str) -> Iterator[list[str]]:
    if words.isascii():
        found = (_PARTS.findall(word) for word in _MIXED.findall(words))
    else:
        found = (split(word) for word in _WORD.findall(words))
    return (parts for parts in found if 1 < len(parts) <= _MOST_PARTS)


def split(word: str) -> list[str]:
    """Return the parts of one word."""
    if word.isascii():
        return _PARTS.findall(word)
    kinds = word.translate(_KINDS)
    return [word[run.start() : run.end()] for run in _RUNS.finditer(kinds)]


def fold(text: str) -> str:
    """Return a text of the same length in which letters that the index takes for one are one."""
    return text.translate(_FOLDED) if _marked().search(text) else text.lower()


def is_edge(text: str, at: int) -> bool:
    """Say whether a word, or a part of one, may begin or end before the character at `at`."""
    if not 0 < at < len(text):
        return True
    left, right = text[at - 1], text[at]
    if not (left.isalnum() and right.isalnum()) or _stands_alone(left) or _stands_alone(right):
        return True
    change = _KINDS[ord(left)] + _KINDS[ord(right)]
    if change == "AA":
        return at + 1 < len(text) and _KINDS[ord(text[at + 1])] == "a"
    return change != "Aa" and change[0] != change[1]


def separate(words: str) -> list[str]:
    """Return the words in what `words_of` returned, as strings."""
    return "".join(c if _is_in_word(c) else " " for c in words).split()


def _stands_alone(character: str) -> bool:
    return len(_SPACING[ord(character)]) > 1


def _is_in_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character) in {"So", "Mn", "Mc", "Me"}
