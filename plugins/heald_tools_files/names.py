"""File names as text: relative where that is shorter, and always printable."""

from __future__ import annotations

from pathlib import Path


def shown(path: Path | str, cwd: Path) -> str:
    """Return a path as people and models read it.

    Bytes that are not UTF-8 and characters that would break a line are replaced, since a log keeps
    neither. A name never begins like a tool's note, with a bracket.
    """
    place = Path(path)
    if place != cwd and place.is_relative_to(cwd):
        place = place.relative_to(cwd)
    text = str(place).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return f"./{text}" if text.startswith("[") else text
