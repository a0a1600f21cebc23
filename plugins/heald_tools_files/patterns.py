"""Path patterns: `*`, `?`, `[...]`, `{a,b}`, and `**` for any number of directories."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fnmatch import translate

_MOST_ALTERNATIVES = 256
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_Part = re.Pattern[str] | None
"""What one name must be; None is `**`, which stands for any number of names."""


class PatternInvalid(ValueError):
    """A path pattern cannot be used."""


class PathPattern:
    """Matches paths that are given as names, outermost first.

    A pattern without a slash is for the last name and matches at any depth; one with a slash is for
    the whole path. `*` matches names that begin with a dot too.
    """

    def __init__(self, text: str) -> None:
        self._alternatives = [_parts(alternative) for alternative in _expand(text)]

    def matches(self, names: Sequence[str]) -> bool:
        """Say whether the pattern is for exactly this path."""
        return any(len(parts) in _follow(parts, names) for parts in self._alternatives)

    def leads_into(self, names: Sequence[str]) -> bool:
        """Say whether the pattern may be for a path beneath this directory."""
        return any(
            any(at < len(parts) for at in _follow(parts, names)) for parts in self._alternatives
        )


def split_root(text: str) -> tuple[str, str]:
    """Split a pattern that is absolute or goes upwards into a directory and a pattern in it."""
    parts = text.split("/")
    if parts[0] not in ("", "..") or len(parts) == 1:
        return "", text
    magic = next((n for n, part in enumerate(parts) if re.search(r"[*?\[{]", part)), len(parts))
    fixed = min(magic, len(parts) - 1)
    return "/".join(parts[:fixed]) or os.sep, "./" + "/".join(parts[fixed:])


def _expand(text: str) -> list[str]:
    """Write out every alternative of the braces, innermost first."""
    done: list[str] = []
    waiting = [text]
    while waiting:
        one = waiting.pop()
        braces = _BRACES.search(one)
        if braces is None:
            done.append(one)
            continue
        options = braces.group(1).split(",")
        waiting += [one[: braces.start()] + option + one[braces.end() :] for option in options]
        if len(done) + len(waiting) > _MOST_ALTERNATIVES:
            raise PatternInvalid(f"braces make more than {_MOST_ALTERNATIVES} patterns")
    return done


def _parts(text: str) -> tuple[_Part, ...]:
    written = [part for part in text.split("/") if part not in ("", ".")]
    if not written:
        raise PatternInvalid("a pattern names at least one file, such as `*.py`")
    if "/" not in text:
        written.insert(0, "**")
    if text.endswith("/"):
        written.append("**")
    if written[-1] == "**":
        written.append("*")  # what is beneath a directory, and not the directory
    return tuple(_part(part) for part in written)


def _part(text: str) -> _Part:
    if text == "**":
        return None
    return re.compile(translate(text.replace("[^", "[!")))


def _follow(parts: Sequence[_Part], names: Sequence[str]) -> set[int]:
    """Return how many parts may be used up after these names."""
    at = _skip(parts, {0})
    for name in names:
        reached = set()
        for n in at:
            if n == len(parts):
                continue
            part = parts[n]
            if part is None:
                reached.add(n)
            elif part.match(name):
                reached.add(n + 1)
        at = _skip(parts, reached)
    return at


def _skip(parts: Sequence[_Part], at: set[int]) -> set[int]:
    """Add the places that are reached because `**` may stand for no directory."""
    for n in range(len(parts)):
        if n in at and parts[n] is None:
            at.add(n + 1)
    return at
