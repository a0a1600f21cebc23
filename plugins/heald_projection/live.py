"""The cells of one live session, which advance with its log."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from heald import HealdError
from heald_projection.catalog import KnownUnit
from heald_projection.cells import Cell
from heald_projection.dispatch import Dispatch
from heald_projection.unit import Snapshot
from heald_session import Event, LogOffset, Seq, Session, after

_logger = logging.getLogger("heald_projection")


@attrs.frozen
class Shown:
    """A snapshot, and what was asked for: it is the answer again until another event comes."""

    revision: int
    """The host's: with another one there may be other units."""
    keys: tuple[str, ...]
    snapshot: Snapshot


@attrs.define(eq=False)
class Change:
    """A projection with a view got another state; told when the registry hears the event."""

    known: KnownUnit
    value: Any
    seq: Seq


class LiveCells:
    """Cells that have all seen the log up to one offset.

    It keeps no reference to its session, so that it goes when the session goes.
    """

    def __init__(self, cells: Iterable[Cell], offset: LogOffset = LogOffset(0)) -> None:
        self.last = Seq(offset - 1)
        """The last event that every cell has seen."""
        self._cells = {cell.key: cell for cell in cells}
        self._dispatch = Dispatch(self._cells.values())
        self.changes: list[Change] = []
        """What nobody was told of yet."""
        self.shown: Shown | None = None
        """What was asked for last."""
        self._reported: set[Cell] = set()
        for cell in self._cells.values():
            self._report(cell)

    @property
    def offset(self) -> LogOffset:
        """How many events every cell has seen."""
        return after(self.last)

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
                self.shown = None
                self._report(cell)
        self._dispatch = Dispatch(self._cells.values())

    def follow(self, event: Event, *, tell: bool = True) -> bool:
        """Fold an event if it is the very next one, and say whether it is.

        What it changes is kept for `take_changes` if it is to be told.
        """
        seq = event.seq
        if seq != self.last + 1:
            return False
        for cell in self._dispatch.fold(event, tell=tell):
            if cell.fault is None:
                self._note(cell, seq)
            else:
                self._report(cell)
                self._dispatch = Dispatch(self._cells.values())
        self.last = seq
        return True

    def advance(self, session: Session, *, tell: bool) -> None:
        """Fold every event up to the log's end."""
        if self.offset < session.end:
            for event in session.hot(self.offset):
                self.follow(event, tell=tell)

    def feed(self, events: Iterable[Event]) -> None:
        """Fold the next events of the log, which are told to nobody; others are passed over."""
        for event in events:
            self.follow(event, tell=False)

    def take_changes(self) -> Sequence[Change]:
        """Return the changes that nobody was told of yet."""
        changes, self.changes = self.changes, []
        return changes

    def _note(self, cell: Cell, seq: Seq) -> None:
        try:
            self.changes.append(Change(cell.known, cell.view(seq), seq))
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
