"""The cells of one live session, which advance with its log."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import attrs

from heald import HealdError
from heald_projection.catalog import KnownUnit
from heald_projection.cells import Cell, Dispatch
from heald_session import Event, LogOffset, Seq, Session, after, before

_logger = logging.getLogger("heald_projection")


@attrs.frozen
class Change:
    """A projection with a view got another state; told when the registry hears the event."""

    key: str
    value: Any
    seq: Seq


class LiveCells:
    """Cells that have all seen the log up to one offset.

    It keeps no reference to its session, so that it goes when the session goes.
    """

    def __init__(self, cells: Iterable[Cell], offset: LogOffset = LogOffset(0)) -> None:
        self.offset = offset
        """How many events every cell has seen."""
        self._cells = {cell.key: cell for cell in cells}
        self._dispatch = Dispatch(self._cells.values())
        self._changes: list[Change] = []
        self._reported: set[Cell] = set()
        for cell in self._cells.values():
            self._report(cell)

    @property
    def all(self) -> tuple[Cell, ...]:
        """Every cell, faulted ones too."""
        return tuple(self._cells.values())

    def find(self, known: KnownUnit) -> Cell | None:
        """Return the cell of exactly this unit, if it was filled."""
        cell = self._cells.get(known.unit.key)
        return cell if cell is not None and cell.known.same_as(known) else None

    def adopt(self, cells: Iterable[Cell]) -> None:
        """Take in cells that have seen the log up to the same offset."""
        for cell in cells:
            if self.find(cell.known) is None:
                self._cells[cell.key] = cell
                self._report(cell)
        self._dispatch = Dispatch(self._cells.values())

    def advance(self, session: Session, *, tell: bool) -> None:
        """Fold every event up to the log's end; changes are kept for `take_changes` if told."""
        if self.offset < session.end:
            for event in session.hot(self.offset):
                self._fold(event, tell=tell)
                self.offset = after(event.seq)

    def feed(self, events: Iterable[Event]) -> None:
        """Fold the next events of the log, which are told to nobody; others are passed over."""
        for event in events:
            if before(event.seq) == self.offset:
                self._fold(event, tell=False)
                self.offset = after(event.seq)

    def take_changes(self) -> list[Change]:
        """Return the changes that nobody was told of yet."""
        changes, self._changes = self._changes, []
        return changes

    def _fold(self, event: Event, *, tell: bool) -> None:
        for cell in self._dispatch.to(event.type):
            if cell.fold(event):
                if tell and cell.known.unit.view is not None:
                    self._note(cell, event.seq)
            elif cell.fault is not None:
                self._report(cell)
                self._dispatch = Dispatch(self._cells.values())

    def _note(self, cell: Cell, seq: Seq) -> None:
        try:
            self._changes.append(Change(cell.key, cell.view(seq), seq))
        except HealdError as error:
            self._log(cell, str(error))

    def _report(self, cell: Cell) -> None:
        if cell.fault is not None:
            where = "at the start" if cell.fault.seq is None else f"at event {cell.fault.seq}"
            self._log(cell, f"failed {where}: {cell.fault.reason}")

    def _log(self, cell: Cell, what: str) -> None:
        if cell not in self._reported:
            self._reported.add(cell)
            plugin = cell.known.plugin
            _logger.error(
                "projection %r of plugin %s: %s; the others go on", cell.key, plugin, what
            )
