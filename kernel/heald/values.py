"""Plain configuration values: taken if they are exactly what is asked for, and shown if not."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from heald.errors import nearest
from heald.interpolation import FromEnvironment

PLAIN = (str, bool, int, float, Path, dt.date, dt.time, dt.datetime)
"""The kinds that `plain` takes: what TOML has, and paths."""

_FLAGS = {"true": True, "false": False}
_SHOWN = 60
"""How much of a wrong value is shown, in characters."""
_NAMES: Mapping[Any, str] = {
    bool: "true or false",
    float: "a number",
    Path: "a path",
    list: "an array",
    dict: "a table",
    NoneType: "nothing",
}


class Unexpected(Exception):
    """A value is not what its kind asks for."""

    def __init__(self, expected: str, value: object, hint: str = "") -> None:
        super().__init__(f"expected {expected}, got {show(value)}{hint}")


def plain(value: Any, kind: Any) -> Any:
    """Take exactly this kind, or what the environment gave if it reads as one."""
    if issubclass(kind, enum.Enum):  # an enumeration of text is text too
        return one_of_enum(value, kind)
    if isinstance(value, FromEnvironment):
        return _from_text(value, kind)
    if kind is float and type(value) is int:
        return float(value)
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    if type(value) is not kind:
        raise Unexpected(name_of(kind), value)
    return value


def _from_text(text: FromEnvironment, kind: Any) -> Any:
    try:
        if kind is bool:
            return _FLAGS[text]
        if kind in (str, int, float, Path):
            return kind(str(text))
        return kind.fromisoformat(text)
    except (ValueError, KeyError):
        raise Unexpected(name_of(kind), text) from None


def one_of_enum(value: Any, kind: Any) -> Any:
    """Take the value of a member."""
    return kind(_one_of([member.value for member in kind], value))


def one_of_literal(value: Any, kind: Any) -> Any:
    """Take one of the choices of a `Literal`."""
    return _one_of(list(get_args(kind)), value)


def _one_of(choices: list[Any], value: Any) -> Any:
    for choice in choices:
        if choice == value and isinstance(choice, bool) is isinstance(value, bool):
            return choice
    words = [choice for choice in choices if isinstance(choice, str)]
    match = nearest(value, words) if isinstance(value, str) else None
    hint = f"; did you mean {match!r}?" if match else ""
    raise Unexpected(f"one of {', '.join(map(repr, choices))}", value, hint)


def show(value: object) -> str:
    """Show a wrong value, but never what the environment held: it may be a secret."""
    if isinstance(value, FromEnvironment):
        return "a value from the environment"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= _SHOWN else text[: _SHOWN - 3] + '...'}"


def is_from_environment(value: object) -> bool:
    """Say whether anything in a value came from the environment."""
    if isinstance(value, Mapping):
        return any(map(is_from_environment, value.values()))
    if isinstance(value, list | tuple):
        return any(map(is_from_environment, value))
    return isinstance(value, FromEnvironment)


def name_of(kind: Any) -> str:
    """Name a kind as the person who writes configuration knows it."""
    if origin(kind) in (Union, UnionType):
        return " or ".join(name_of(branch) for branch in get_args(kind) if branch is not NoneType)
    return _NAMES.get(origin(kind)) or str(getattr(kind, "__name__", kind))


def origin(kind: Any) -> Any:
    """Return `list` for `list[int]`, and what has no arguments as it is."""
    return get_origin(kind) or kind
