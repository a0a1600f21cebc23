"""What a unit promises of what it returns, and how to tell that it did not keep it."""

from __future__ import annotations

import inspect
from types import CoroutineType
from typing import Any, Final

import msgspec

PLAIN: Final = frozenset({dict, list, str, int, float, bool, type(None)})
"""What a value is of at the top if it is plain JSON."""
NOT_THE_UNITS: Final = (KeyboardInterrupt, GeneratorExit)
"""What is raised inside a unit and is not its fault; everything else is, also `sys.exit`."""


def refuse_awaitable(value: Any) -> None:
    """Refuse what a plain function that calls an async one returns."""
    if isinstance(value, CoroutineType):
        value.close()
    if inspect.isawaitable(value):
        raise TypeError("returned an awaitable; a fold and its view are plain functions")


def misfit_of(value: Any, schema: msgspec.json.Decoder[Any]) -> str | None:
    """Say why a value is not what a unit promises: plain JSON that fits a schema.

    Tuples, sets, NaN, structs and odd keys do not survive JSON.
    """
    try:
        text = msgspec.json.encode(value)
        if msgspec.json.decode(text) != value:
            return "is not plain JSON"
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return "is not plain JSON"
    try:
        schema.decode(text)
    except Exception as error:  # noqa: BLE001 - a schema's own checks may raise anything
        return f"does not fit its schema: {error}"
    return None
