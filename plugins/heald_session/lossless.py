"""Refuses data that would not come back from JSON unchanged, and says where it is."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

import msgspec

from heald_session.errors import DataNotJson

MAX_INTEGER = 2**53
"""Beyond it, a reader that has only doubles reads another number."""

MAX_DEPTH = 200
"""How deep values may be nested: well within what every JSON reader takes."""

_Path = tuple["_Path", "str | int"] | None
_JSON_TYPES = (str, bool, int, float, list, dict)
_SIMPLE = frozenset((str, bool, type(None)))
_encode = msgspec.json.Encoder().encode


def encoded(data: object) -> bytes:
    """Encode data as JSON; raise `DataNotJson` with the path to what would not come back the same.

    A struct stands for its fields; everything else must be exactly what JSON gives back.
    """
    if not _looks_plain(data, MAX_DEPTH):
        data = _vetted(data)
    try:
        return _encode(data)
    except UnicodeEncodeError:
        _walk(data, None, [])
        raise


def _vetted(data: object) -> object:
    """Return what is not evidently plain as plain values, or raise `DataNotJson`."""
    if isinstance(data, msgspec.Struct):
        try:
            data = msgspec.to_builtins(data)
        except (TypeError, ValueError, RecursionError) as error:
            raise DataNotJson("data", str(error) or "it contains itself") from error
    if not _looks_plain(data, MAX_DEPTH):
        _walk(data, None, [])
    return data


def _looks_plain(value: Any, levels: int) -> bool:  # noqa: C901 - calls would cost more
    """Say whether a quick look finds nothing to refuse; encoding looks at the text.

    Nearly every append needs no more, so it is written to be quick and keeps no path.
    """
    if type(value) is dict:
        for key in value:
            if type(key) is not str:
                return False
        value = value.values()
    elif type(value) is not list:
        return type(value) in _SIMPLE
    if not levels:
        return False
    for item in value:
        kind = type(item)
        if kind is str:
            continue
        if kind is int:
            plain = -MAX_INTEGER <= item <= MAX_INTEGER
        elif kind is dict or kind is list:
            plain = _looks_plain(item, levels - 1)
        else:
            plain = kind in _SIMPLE or (kind is float and math.isfinite(item))
        if not plain:
            return False
    return True


def _walk(value: object, path: _Path, inside: list[int]) -> None:
    kind = type(value)
    if kind is dict or kind is list:
        _walk_container(value, path, inside)
    elif isinstance(value, str) and kind is str:
        _check_text(value, path)
    elif isinstance(value, float) and kind is float:
        if not math.isfinite(value):
            _refuse(path, f"{value} is not a JSON number")
    elif isinstance(value, int) and kind is int:
        if abs(value) > MAX_INTEGER:
            _refuse(path, f"the integer {value} is beyond 2^53")
    elif value is not None and kind is not bool:
        _refuse(path, _foreign(value))


def _walk_container(value: Any, path: _Path, inside: list[int]) -> None:
    if id(value) in inside:
        _refuse(path, "it contains itself")
    if len(inside) == MAX_DEPTH:
        _refuse(path, f"it is nested deeper than {MAX_DEPTH} levels")
    inside.append(id(value))
    if type(value) is list:
        for index, item in enumerate(value):
            _walk(item, (path, index), inside)
    else:
        for key, item in value.items():
            if type(key) is not str:
                _refuse(path, f"the key {key!r} is not plain text")
            _check_text(key, path)
            _walk(item, (path, key), inside)
    inside.pop()


def _check_text(text: str, path: _Path) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse(path, "the text has a lone surrogate")


def _foreign(value: object) -> str:
    name = type(value).__name__
    base = next((b.__name__ for b in _JSON_TYPES if isinstance(value, b)), None)
    if base is not None:
        return f"{name} is a subclass of {base} and would come back as {base}"
    return f"{name} is not a JSON value"


def _refuse(path: _Path, reason: str) -> NoReturn:
    parts: list[str] = []
    while path is not None:
        path, key = path
        parts.append(_step(key))
    raise DataNotJson("".join(["data", *reversed(parts)]), reason)


def _step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"
