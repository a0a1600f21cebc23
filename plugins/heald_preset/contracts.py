"""What presets are to everyone else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import attrs

from heald import Composition, Stack
from heald_session import Seq, Session


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


@attrs.frozen
class PresetRemoved:
    """What became of a preset that was removed."""

    id: str
    kept: Path
    """Where its directory is now."""
    default: str | None = None
    """The default that holds now, if the removed preset was it."""


@attrs.frozen
class DefaultSet:
    """What became of a default that was set."""

    preset: str
    file: Path
    """Where it is written."""
    holds: str
    """The default that holds: another one if `holds_by` says so."""
    holds_by: str
    """Which layer says so."""


@attrs.frozen
class PresetChoice:
    """What became of the choice of a preset for a session."""

    preset: str
    seq: Seq | None
    """The event that says so, which is durable; None if the session ran on just that already."""


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

    def another(self) -> Seat:
        """Take another seat on the same composition, which stays until both are released."""
        ...

    async def release(self) -> None:
        """Give the seat up; the last one out stops the composition. Once is enough."""
        ...


class Presets(Protocol):
    """The roster of presets, and the compositions that agents on them share.

    The roster is read from its files each time, so an edit is seen by the next call.
    """

    async def roster(self, cwd: Path | None) -> Sequence[Preset]:
        """List every preset that a session in `cwd` could choose, shadowed ones marked."""
        ...

    async def resolve(self, preset: str, cwd: Path | None) -> Stack:
        """Return the rows that a preset comes to, with origins.

        Raises `PresetNotFound`, or `PresetInvalid` with the reason that the roster shows.
        """
        ...

    async def check(self, preset: str, cwd: Path | None) -> None:
        """Mount a preset for nobody, and stop it again.

        Raises `PresetNotFound`, or `PresetInvalid` with every row that failed to start or to stop.
        """
        ...

    async def default(self) -> str:
        """Return the id that a session gets when none is named, as it is set now.

        It may name nothing. Raises `CompositionError` if the host's files cannot be read any more.
        """
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

    async def running(self, session: Session) -> str | None:
        """Return the preset that a live session runs, by its log; None if it is the host's rows."""
        ...

    async def sit(
        self, session: Session, *, preset: str | None = None, continue_as: str | None = None
    ) -> None:
        """Let a session that was loaded run on the preset that its log names.

        One that has a place already, or no preset, stays as it is. If its preset cannot be mounted
        any more it goes on with `continue_as`, which is logged; without that, raises `PresetGone`
        or `PresetInvalid`. Raises `PresetConflict` if another preset is named than the one it runs.
        """
        ...

    async def switch(self, session: Session, preset: str) -> PresetChoice:
        """Let a blank live session run on the newest generation of a preset.

        Returns once that is durable and the old composition is left. Raises `PresetLocked` after
        the first turn began and for a subagent, `PresetNotFound`, `PresetInvalid`, or what
        `Session.append` raises; then the session is as it was. Raises what `Session.flush` raises,
        too; then it runs on the preset.
        """
        ...


class PresetAuthoring(Protocol):
    """The person's own presets: directories below the root `user`.

    Files are written whole or not at all: raises `FileUnwritable` then.
    """

    async def copy(self, source: str, new: str, cwd: Path | None) -> Path:
        """Copy a preset with everything that is in its directory, but for its label and order.

        Raises `PresetNotFound`, `PresetExists`, and `PresetInvalid` for an id that is none and for
        what cannot be copied.
        """
        ...

    async def create(self, new: str, extends: str | None, cwd: Path | None) -> Path:
        """Make a preset with a file to start from, that extends another or begins with nothing.

        Raises `PresetExists`, `PresetInvalid`, and `PresetNotFound` for what it is to extend.
        """
        ...

    async def remove(self, preset: str, cwd: Path | None) -> PresetRemoved:
        """Move a preset's directory out of the roster, and clear a default that named it.

        Raises `PresetNotFound`, or `PresetReadOnly` if it is not the person's own.
        """
        ...

    async def set_default(self, preset: str, cwd: Path | None) -> DefaultSet:
        """Make a preset the default of sessions that are made from now on, in this host too.

        Raises `PresetNotFound` or `PresetInvalid`.
        """
        ...
