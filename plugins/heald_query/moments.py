"""Moments and positions as people type them: a date, a time, how long ago, a place in a list."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import click

from heald_query.contracts import Position

_AGO = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_FORMS = "a date like 2026-07-01, a time like 2026-07-01T09:30, or how long ago, like 2h or 3d"

Moment = Callable[[int], int]
"""Returns milliseconds since the epoch, given what they are now."""


def moment(text: str) -> Moment:
    """Read an ISO date or time, in the local zone if it names none, or a span before now.

    Raises `ValueError`.
    """
    if (ago := _AGO.fullmatch(text)) is not None:
        span = timedelta(**{_UNITS[ago[2]]: int(ago[1])}) // timedelta(milliseconds=1)
        return lambda now: now - span
    try:
        at = round(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r} is not {_FORMS}") from None
    return lambda _: at


def typed_moment(_: click.Context, __: click.Parameter, text: str | None) -> Moment | None:
    """Read a moment for an option."""
    try:
        return None if text is None else moment(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def typed_position(_: click.Context, __: click.Parameter, text: str | None) -> Position | None:
    """Read a position for an option."""
    try:
        return None if text is None else Position.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


since_option = click.option(
    "--since", metavar="WHEN", callback=typed_moment, help=f"Only from then on: {_FORMS}."
)
