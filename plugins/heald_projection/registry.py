"""The registry: cells of every live session, and cold folds with the same units."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from heald import HealdError, Host
from heald_projection.catalog import Catalog, KnownUnit
from heald_projection.cells import Cell, Dispatch
from heald_projection.errors import ProjectionNotReady
from heald_projection.folds import ColdFold, views_of
from heald_projection.hookspecs import projection_changed
from heald_projection.live import LiveCells
from heald_projection.unit import CellState, Snapshot
from heald_session import Event, Header, LogOffset, Seq, Session


class Registry:
    """Keeps the cells of sessions for as long as the sessions themselves are kept."""

    def __init__(self, host: Host) -> None:
        self._catalog = Catalog(host)
        self._live: WeakKeyDictionary[Session, LiveCells] = WeakKeyDictionary()

    def load(self, session: Session, events: Sequence[Event]) -> None:
        """Fold what is loaded of a session's log; what is in the cells then is nobody's news."""
        if session not in self._live:
            self._live[session] = self._begun(session)
        self._live[session].feed(events)

    def prepare(self, session: Session) -> None:
        """Bring a session's cells to the end of its log before anyone can see it."""
        self._reaching(session).advance(session, tell=False)

    def needed(self, session: Session) -> LogOffset | None:
        """Return up to where the session's cells have seen its log."""
        cells = self._live.get(session)
        return None if cells is None else cells.offset

    def appended(self, session: Session, event: Event) -> None:
        """Advance through an event and tell what it changed."""
        for change in self._caught_up(session).take_changes():
            session.scope.notify(projection_changed, session, change.key, change.value, change.seq)

    def snapshot(self, session: Session, keys: Collection[str]) -> Snapshot:
        """Advance to the log's end and return views at that one cut."""
        cells = self._caught_up(session)
        found = (self._select(cells, key) for key in dict.fromkeys(keys))
        selected = [cell for cell in found if cell is not None]
        last = Seq(cells.offset - 1)
        return Snapshot(last, views_of(selected, last))

    def state(self, session: Session, key: str) -> Any:
        """Return the host state of one unit at the log's end."""
        cell = self._select(self._caught_up(session), key)
        if cell is None:
            raise KeyError(key)
        return cell.read()

    async def ready(self, session: Session, keys: Collection[str]) -> None:
        """Fill the selected units that the session has no cells of yet."""
        missing = self._missing(self._caught_up(session), keys)
        if not missing:
            return
        fresh = [Cell.begin(known, session.header, session.cut) for known in missing]
        await _fill(fresh, session)
        self._caught_up(session).adopt(fresh)

    def fold(
        self,
        header: Header,
        cut: LogOffset,
        keys: Collection[str],
        base: Sequence[CellState] = (),
    ) -> ColdFold:
        """Begin a cold fold."""
        states = {state.key: state for state in base}
        found = (self._catalog.find(key) for key in dict.fromkeys(keys))
        return ColdFold(
            [
                Cell.begin(known, header, cut, states.get(known.unit.key))
                for known in found
                if known is not None
            ]
        )

    def cells(self, session: Session) -> Sequence[CellState]:
        """Return detached states of every sound cell at the log's end."""
        cells = self._caught_up(session)
        states = []
        for cell in cells.all:
            try:
                states.append(cell.detached(cells.offset))
            except HealdError:
                continue
        return states

    def faulted(self, session: Session) -> frozenset[str]:
        """Return the keys that cannot be read."""
        return frozenset(cell.key for cell in self._caught_up(session).all if _is_faulted(cell))

    def _reaching(self, session: Session) -> LiveCells:
        """Return cells that what is in memory of the log brings to its end.

        Of a log that was not heard from its beginning there are none before `ready`.
        """
        cells = self._live.get(session)
        if cells is None or cells.offset < session.hot_from:
            heard_all = session.hot_from == 0
            cells = self._begun(session) if heard_all else LiveCells((), session.end)
            self._live[session] = cells
        return cells

    def _begun(self, session: Session) -> LiveCells:
        return LiveCells(Cell.begin(known, session.header, session.cut) for known in self._catalog)

    def _caught_up(self, session: Session) -> LiveCells:
        told = session in self._live
        cells = self._reaching(session)
        cells.advance(session, tell=told)
        return cells

    def _select(self, cells: LiveCells, key: str) -> Cell | None:
        known = self._catalog.find(key)
        if known is None:
            return None
        if (cell := cells.find(known)) is None:
            raise ProjectionNotReady(key)
        return cell

    def _missing(self, cells: LiveCells, keys: Collection[str]) -> list[KnownUnit]:
        found = (self._catalog.find(key) for key in dict.fromkeys(keys))
        return [known for known in found if known is not None and cells.find(known) is None]


async def _fill(cells: list[Cell], session: Session) -> None:
    """Fold a whole log; the last step reads what is in memory, so nothing comes in between."""
    dispatch = Dispatch(cells)
    offset = LogOffset(0)
    while offset < session.hot_from:
        end = session.end
        async for event in session.read(offset, end):
            _feed(dispatch, event)
        offset = end
    for event in session.hot(offset):
        _feed(dispatch, event)


def _feed(dispatch: Dispatch, event: Event) -> None:
    for cell in dispatch.to(event.type):
        cell.fold(event)


def _is_faulted(cell: Cell) -> bool:
    try:
        cell.read()
    except HealdError:
        return True
    return False
