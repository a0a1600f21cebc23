"""Changes what a TOML document says, and leaves everything else of it as it is written."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from itertools import takewhile
from typing import Any

_TABLE = re.compile(r"^[ \t]*\[\[", re.MULTILINE)


def edit_toml(text: str, change: Callable[[Any], None], *, last: bool = False) -> str:
    """Return a document as `change` leaves it, which is called with one piece of it at a time.

    A piece is what comes before the first `[[table]]`, or one of these. With `last` only the last
    piece that would be changed is. Raises `ValueError` if the document is no TOML, or of a form
    that cannot be kept.
    """
    import tomlkit  # noqa: PLC0415 - only who writes needs it

    wanted = tomllib.loads(text)
    change(wanted)
    # Not the whole document, which would come back with tables of one name put together, and with
    # comments where they do not belong.
    pieces = _pieces(text)
    for n, piece in reversed([*enumerate(pieces)]):
        plain = tomllib.loads(piece)
        before = deepcopy(plain)
        change(plain)
        if plain != before:
            document = tomlkit.parse(piece)
            change(document)
            pieces[n] = document.as_string() if plain else _remarks_behind(piece)
            if last:
                break
    edited = "".join(pieces)
    if not _says(edited, wanted):
        raise ValueError("something else of it would change")
    return edited


def _pieces(text: str) -> list[str]:
    """Part a document before each `[[table]]`, but not where a value only looks like one."""
    pieces, begin = [], 0
    for end in [*(match.start() for match in _TABLE.finditer(text)), len(text)]:
        if _is_toml(text[begin:end]):
            pieces.append(text[begin:end])
            begin = end
    return pieces


def _is_toml(text: str) -> bool:
    with suppress(tomllib.TOMLDecodeError):
        tomllib.loads(text)
        return True
    return False


def _remarks_behind(piece: str) -> str:
    """Return the comments at the end of a piece, which are about what follows."""
    backwards = reversed(piece.splitlines(keepends=True))
    lines = takewhile(lambda line: line.strip()[:1] in ("", "#"), backwards)
    return "".join(reversed([*lines]))


def _says(text: str, wanted: object) -> bool:
    with suppress(tomllib.TOMLDecodeError):
        return tomllib.loads(text) == wanted
    return False
