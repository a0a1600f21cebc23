"""A cold fold: selected units over a log that somebody else reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from heald_projection.cells import Cell
from heald_projection.dispatch import Dispatch
from heald_projection.unit import Snapshot
from heald_session import Event, LogOffset, Seq


class ColdFold:
    """Folds what it is fed; a unit that raises is met only when it is read."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells = {cell.key: cell for cell in cells}
        self._dispatch = Dispatch(cells)
        self._start = min((c.offset for c in cells if c.fault is None), default=LogOffset(0))

    @property
    def event_types(self) -> frozenset[str] | None:
        """The types the fold needs; None is every type."""
        return self._dispatch.types

    @property
    def start(self) -> LogOffset:
        """Where reading must begin."""
        return self._start

    def feed(self, event: Event) -> None:
        """Fold an event into every cell that wants it."""
        self._dispatch.fold(event)

    def snapshot(self, end: LogOffset) -> Snapshot:
        """Return the views at `end`."""
        return Snapshot(end - 1, views_of(self._cells.values(), Seq(end - 1)))

    def state(self, key: str) -> Any:
        """Return a selected unit's state."""
        return self._cells[key].read()


def views_of(cells: Iterable[Cell], seq: Seq) -> dict[str, Any]:
    """Return views by key; a cell without one is left out, but its fault is raised all the same."""
    views = {}
    for cell in cells:
        view = cell.view(seq)
        if cell.has_view:
            views[cell.key] = view
    return views
