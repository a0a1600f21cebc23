# mypy: disable-error-code="empty-body"
# ruff: noqa: PIE790 - pyright takes a body for a signature only if it ends in `...`
"""A vocabulary for the kernel's tests: every kind of hook, owned by a package that tests install.

The fixture `site` copies this file to where a test installs distributions.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

import attrs

from heald import collect, declare, observe, provide, wrap


@attrs.frozen
class Word:
    """Something with a name and a version."""

    key: str
    version: int = 1
    text: str = ""


trace: list[str] = []
"""What happened, in order."""


@provide
def shed() -> str:
    """Open the warp."""
    ...


@provide
def warp() -> str:
    """Hold the threads."""
    ...


@provide
def weft() -> str:
    """Cross the threads."""
    ...


@collect(key=attrgetter("key"))
def threads() -> Iterable[Word]:
    """Contribute threads; no two of one name."""
    ...


@collect
def notes() -> Iterable[str]:
    """Contribute notes; any number of the same."""
    ...


@declare(key=attrgetter("key"), version=attrgetter("version"))
def patterns() -> Iterable[Word]:
    """Declare patterns."""
    ...


@observe
def woven(cloth: str, length: int) -> None:
    """Hear of a cloth."""
    ...


@observe
async def cut(cloth: str) -> None:
    """Hear of a cloth that was cut off."""
    ...


@wrap
async def dyed(request: str) -> str:
    """Dye a cloth."""
    ...
