"""The one fold: live, cold and checkpointed reads all bring events to their cells through it."""

from __future__ import annotations

from collections.abc import Iterable

from heald import describe
from heald_projection.cells import Cell, CellFault
from heald_projection.promises import NOT_THE_UNITS, PLAIN, refuse_awaitable
from heald_session import Event


class Dispatch:
    """Which sound cells an event goes to, by its type; compiled once."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        sound = [cell for cell in cells if cell.fault is None]
        named = {name for cell in sound for name in cell.known.types or ()}
        self._every = tuple(cell for cell in sound if cell.known.types is None)
        self._by_type = {
            name: tuple(c for c in sound if c.known.types is None or name in c.known.types)
            for name in named
        }

    @property
    def types(self) -> frozenset[str] | None:
        """The types that reach any cell; None is every type."""
        return None if self._every else frozenset(self._by_type)

    def fold(self, event: Event, *, tell: bool = False) -> tuple[Cell, ...]:
        """Fold an event into the cells that want it and have not folded it.

        What a unit raises becomes the fault of its cell, and the other cells go on. Returns those
        that failed, and if it is to be told those with a view that changed. There is no call
        between this loop and the units, since it would cost as much as many of them do.
        """
        seq = event.seq
        moved: tuple[Cell, ...] = ()
        for cell in self._by_type.get(event.type, self._every):
            if seq <= cell.last or cell.fault is not None:
                continue
            apply, before = cell.apply, cell.state
            try:
                state = apply(before, event)
                kind = type(state)
                if kind is not dict and kind not in PLAIN:
                    refuse_awaitable(state)
            except NOT_THE_UNITS:
                raise
            except BaseException as error:  # noqa: BLE001 - the other cells must go on
                cell.fault = CellFault(seq, describe(error))
                moved += (cell,)
                continue
            cell.last = seq
            if state is not before:
                cell.state = state
                if tell and cell.has_view:
                    moved += (cell,)
        return moved
