"""What presets are to everyone else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import attrs

from heald import Composition, Stack
from heald_session import Session


@attrs.frozen
class PresetRoot:
    """A directory of presets: each is a directory `<id>` with a `preset.toml`."""

    name: str
    """What people see as the origin: shipped, project, user, or the package that brought it."""
    path: Path


@attrs.frozen
class Preset:
    """One entry of the roster; a broken one stays listed with its problem."""

    id: str
    root: str
    path: Path
    label: str = ""
    description: str = ""
    order: int = 100
    extends: str | None = None
    problem: str | None = None
    shadowed: bool = False
    """Whether a preset of the same id in an earlier root hides this one."""


class Seat(Protocol):
    """A place on a preset's standing composition, held until it is released."""

    @property
    def preset(self) -> str:
        """The preset's id."""
        ...

    @property
    def generation(self) -> str:
        """Names what the preset resolved to when its composition was mounted."""
        ...

    @property
    def composition(self) -> Composition:
        """The composition that the seat keeps mounted."""
        ...

    async def release(self) -> None:
        """Give the seat up; the last one out stops the composition. Once is enough."""
        ...


class Presets(Protocol):
    """The roster of presets, and the compositions that agents on them share.

    The roster is read from its files each time, so an edit is seen by the next call.
    """

    def roster(self, cwd: Path | None) -> Sequence[Preset]:
        """List every preset that a session in `cwd` could choose, shadowed ones marked."""
        ...

    def resolve(self, preset: str, cwd: Path | None) -> Stack:
        """Return the rows that a preset comes to, with origins.

        Raises `PresetNotFound`, or `PresetInvalid` with the reason that the roster shows.
        """
        ...

    def default(self) -> str:
        """Return the id that a session gets when none is named; it may name nothing."""
        ...

    async def seat(self, preset: str | None, cwd: Path | None) -> Seat:
        """Join the composition of a preset's newest generation, mounting it if need be.

        None is the default. Raises `PresetNotFound`, or `PresetInvalid` with every failed row.
        """
        ...

    async def seat_beside(self, session: Session) -> Seat | None:
        """Join the very composition that a live session runs on; None if it runs on the host."""
        ...

    def occupy(self, session: Session, seat: Seat) -> None:
        """Let a live session run on a seat until it closes, and release the seat then."""
        ...
