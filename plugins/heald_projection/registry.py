"""The registry: cells of every live session, and cold folds with the same units."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any
from weakref import finalize

from heald import HealdError, Host
from heald_projection.catalog import Catalog, KnownUnit
from heald_projection.cells import Cell
from heald_projection.contracts import KeptViews
from heald_projection.dispatch import Dispatch
from heald_projection.errors import ProjectionNotReady
from heald_projection.folds import ColdFold, views_of
from heald_projection.hookspecs import projection_changed
from heald_projection.kept_views import UnitViews
from heald_projection.live import LiveCells, Shown
from heald_projection.unit import CellState, Snapshot
from heald_session import Event, Header, LogOffset, Session


class Registry:
    """Keeps the cells of sessions for as long as the sessions themselves are kept."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._catalog = Catalog(host)
        self._live: dict[int, LiveCells] = {}
        """By the `id` of a session, for every event looks here; an entry goes with its session."""

    def load(self, session: Session, events: Sequence[Event]) -> None:
        """Fold what is loaded of a session's log; what is in the cells then is nobody's news."""
        cells = self._live.get(id(session)) or self._keep(session, self._begun(session))
        cells.feed(events)

    def prepare(self, session: Session) -> None:
        """Bring a session's cells to the end of its log before anyone can see it."""
        self._reaching(session).advance(session, tell=False)

    def needed(self, session: Session) -> LogOffset | None:
        """Return up to where the session's cells have seen its log."""
        cells = self._live.get(id(session))
        return None if cells is None else cells.offset

    def appended(self, session: Session, event: Event) -> None:
        """Advance through an event and tell what it changed."""
        cells = self._live.get(id(session))
        if cells is None or not cells.follow(event):
            cells = self._caught_up(session)
        if cells.changes:
            self._tell(session, cells)

    def _tell(self, session: Session, cells: LiveCells) -> None:
        for change in cells.take_changes():
            if self._catalog.knows(change.known):
                key = change.known.unit.key
                session.scope.notify(projection_changed, session, key, change.value, change.seq)

    def snapshot(self, session: Session, keys: Collection[str]) -> Snapshot:
        """Advance to the log's end and return views at that one cut."""
        cells = self._caught_up(session)
        asked, shown = (*keys,), cells.shown
        if (  # a list of sessions asks them all, again and again
            shown is not None
            and shown.snapshot.as_of_seq == cells.last
            and shown.keys == asked
            and shown.revision == self._host.revision
        ):
            return shown.snapshot
        found = [cell for key in asked if (cell := self._select(cells, key)) is not None]
        snapshot = Snapshot(cells.last, views_of(found, cells.last))
        cells.shown = Shown(self._host.revision, asked, snapshot)
        return snapshot

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

    def event_types(self, keys: Collection[str]) -> frozenset[str] | None:
        """Return the types that a fold needs."""
        wanted: set[str] = set()
        for known in map(self._catalog.find, keys):
            if known is not None and known.types is None:
                return None
            wanted.update(() if known is None else known.types or ())
        return frozenset(wanted)

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

    def kept_views(self, keys: Collection[str]) -> KeptViews:
        """Return what shows kept states of these keys."""
        return UnitViews.of_keys(self._catalog, keys)

    def cells(self, session: Session) -> Sequence[CellState]:
        """Return detached states of every sound cell at the log's end."""
        cells = self._caught_up(session)
        states = []
        for cell in self._present(cells):
            with suppress(HealdError):
                states.append(cell.detached(cells.offset))
        return states

    def _present(self, cells: LiveCells) -> list[Cell]:
        """Return the cells of what is known now: a unit may have come in another version."""
        return [cell for cell in cells.all if self._catalog.knows(cell.known)]

    def _reaching(self, session: Session) -> LiveCells:
        """Return cells that what is in memory of the log brings to its end.

        Of a log that was not heard from its beginning there are none before `ready`.
        """
        cells = self._live.get(id(session))
        if cells is None or cells.offset < session.hot_from:
            heard_all = session.hot_from == 0
            fresh = self._begun(session) if heard_all else LiveCells((), session.end)
            return self._keep(session, fresh)
        return cells

    def _keep(self, session: Session, cells: LiveCells) -> LiveCells:
        key = id(session)
        if key not in self._live:
            finalize(session, self._live.pop, key).atexit = False
        self._live[key] = cells
        return cells

    def _begun(self, session: Session) -> LiveCells:
        return LiveCells(Cell.begin(known, session.header, session.cut) for known in self._catalog)

    def _caught_up(self, session: Session) -> LiveCells:
        cells = self._live.get(id(session))
        if cells is not None and cells.last == session.end - 1:
            return cells
        told = cells is not None
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
            dispatch.fold(event)
        offset = end
    for event in session.hot(offset):
        dispatch.fold(event)
