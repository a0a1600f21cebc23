"""What the projection registry is to everyone else."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from heald_projection.unit import CellState, Snapshot
from heald_session import Event, Header, LogOffset, Session


class Fold(Protocol):
    """A cold fold of selected units over a log that somebody else reads."""

    @property
    def event_types(self) -> frozenset[str] | None:
        """The types the fold needs; None is every type."""
        ...

    @property
    def start(self) -> LogOffset:
        """Where reading must begin: the lowest offset of the states it starts from."""
        ...

    def feed(self, event: Event) -> None:
        """Fold an event into every unit that wants it and has not folded it yet."""
        ...

    def snapshot(self, end: LogOffset) -> Snapshot:
        """Return the views, the log having been fed up to `end`.

        Raises `ProjectionFaulted` or `UnitInvalid`.
        """
        ...

    def state(self, key: str) -> Any:
        """Return a unit's state; raises as `snapshot` does, and `KeyError` if not selected."""
        ...


class KeptViews(Protocol):
    """The views of some keys, made of states that are kept as JSON; usable in any thread."""

    @property
    def versions(self) -> Mapping[str, int]:
        """Which state version of which keys can be shown, in the order of the states."""
        ...

    def of(self, states: Sequence[str | None]) -> dict[str, Any]:
        """Return the views of the states that there are, one for each key of `versions`.

        A state that its unit could not go on from, or cannot show, is left out: what is wrong is
        told by who folds the log.
        """
        ...


class Projections(Protocol):
    """Folds every live session's events, and cold logs on request, with the same units."""

    def snapshot(self, session: Session, keys: Collection[str]) -> Snapshot:
        """Advance to the log's end and return views at that one cut; they must not be changed.

        Raises `ProjectionFaulted`, `ProjectionNotReady`, `UnitInvalid` or `VocabularyConflict`, and
        for a selected key only.
        """
        ...

    def state(self, session: Session, key: str) -> Any:
        """Return the host state of one unit at the log's end; it must not be changed.

        Raises as `snapshot` does, and `KeyError` if no unit has the key.
        """
        ...

    async def ready(self, session: Session, keys: Collection[str]) -> None:
        """Fill units that became known after the session was opened."""
        ...

    def event_types(self, keys: Collection[str]) -> frozenset[str] | None:
        """Return the types that a fold of these keys needs; None is every type.

        Raises `VocabularyConflict`.
        """
        ...

    def fold(
        self,
        header: Header,
        cut: LogOffset,
        keys: Collection[str],
        base: Sequence[CellState] = (),
    ) -> Fold:
        """Begin a cold fold, going on from states of the same log where they fit."""
        ...

    def kept_views(self, keys: Collection[str]) -> KeptViews:
        """Return what shows kept states of these keys as the units of today do.

        A key that no unit has, or two claim, or whose unit has no view, is left out.
        """
        ...

    def cells(self, session: Session) -> Sequence[CellState]:
        """Return detached states of every sound cell at the log's end.

        One that cannot be read is left out, and one whose unit is no longer the one that counts.
        """
        ...
