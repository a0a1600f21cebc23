"""What a check is, and what it finds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol

import attrs


class Progress(Protocol):
    """Hears how far a check or a rebuilding is."""

    def __call__(self, done: int, total: int | None = None) -> None:
        """Take how many of how many are done; None while the total is not known."""
        ...


@attrs.frozen(kw_only=True)
class Finding:
    """Something that is not as it should be."""

    severity: Literal["warning", "error"]
    """An error is something that is lost, or does not work; a warning costs time only."""
    message: str
    """What is wrong, and where."""
    remedy: str | None = None
    """What the person can do, if rebuilding is not it."""


@attrs.frozen(kw_only=True)
class Check:
    """One thing that `heald doctor` looks at, and can make anew if that is possible."""

    name: str = attrs.field(validator=attrs.validators.matches_re("[A-Za-z0-9][A-Za-z0-9-]*"))
    """What it is chosen by on the command line; letters, digits and `-`."""
    about: str
    """What it looks at, in a few words for a person."""
    run: Callable[[Progress], Awaitable[Sequence[Finding]]]
    """Look, changing nothing; an error it raises is itself a finding."""
    rebuild: Callable[[Progress], Awaitable[None]] | None = None
    """Make what is looked at anew from what it is derived from."""
