"""A cell: one unit's state for one log. Live, cold and checkpointed reads all fold through it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import CoroutineType
from typing import Any, Self

import attrs
import msgspec

from heald import HealdError
from heald_projection.catalog import KnownUnit
from heald_projection.errors import ProjectionFaulted, UnitInvalid
from heald_projection.unit import CellState
from heald_session import Event, Header, LogOffset, Seq, after

_UNPROVEN = object()
_PLAIN = frozenset({dict, list, str, int, float, bool, type(None)})


@attrs.frozen
class CellFault:
    """Where a fold stopped, and why; None is before the first event."""

    seq: Seq | None
    reason: str


@attrs.define(eq=False)
class Cell:
    """Folds events into one unit's state; what the unit raises becomes the cell's fault."""

    known: KnownUnit
    state: Any = None
    offset: LogOffset = LogOffset(0)
    """After the last event it folded: an event before it is never folded again."""
    fault: CellFault | None = None
    _proven: Any = _UNPROVEN
    """The last state that was seen to be plain JSON."""

    @classmethod
    def begin(
        cls, known: KnownUnit, header: Header, cut: LogOffset, base: CellState | None = None
    ) -> Self:
        """Make the cell of a log before its first event, or where a fitting state left off."""
        cell = cls(known)
        if known.problem is not None:
            cell.fault = CellFault(None, known.problem)
        elif base is not None and base.fits(known.unit):
            cell.state, cell.offset = base.state, base.offset
        else:
            cell._start(header, cut)
        return cell

    @property
    def key(self) -> str:
        """The key of its unit."""
        return self.known.unit.key

    def fold(self, event: Event) -> bool:
        """Fold an event, and say whether that changed the state; never raises."""
        if event.seq < self.offset or self.fault is not None:
            return False
        before = self.state
        try:
            state = _settled(self.known.unit.apply(before, event))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the other cells must go on
            self.fault = CellFault(event.seq, _describe(error))
            return False
        self.state, self.offset = state, after(event.seq)
        return state is not before

    def read(self) -> Any:
        """Return the state; raises `ProjectionFaulted` or `UnitInvalid`."""
        if self.fault is not None:
            raise self._error(self.fault)
        if self.state is not self._proven:
            if not _is_json(self.state):
                raise UnitInvalid(self.key, "its state is not plain JSON")
            self._proven = self.state
        return self.state

    def view(self, seq: Seq) -> Any:
        """Return what clients see at an event; raises like `read`, for a failing view too."""
        view = self.known.unit.view
        state = self.read()
        try:
            return _settled(view(state)) if view is not None else None
        except (Exception, SystemExit) as error:
            reason = f"its view raised {_describe(error)}"
            raise ProjectionFaulted(self.key, seq, self.known.plugin, reason) from error

    def detached(self, offset: LogOffset) -> CellState:
        """Return a copy of the state as of `offset`; raises like `read`."""
        state = msgspec.json.decode(msgspec.json.encode(self.read()))
        return CellState(self.key, self.known.unit.state_version, offset, state)

    def _start(self, header: Header, cut: LogOffset) -> None:
        try:
            self.state = _settled(self.known.unit.initial(header, cut))
            self.read()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the other cells must go on
            self.fault = CellFault(None, f"its initial state: {_describe(error)}")

    def _error(self, fault: CellFault) -> HealdError:
        if fault.seq is None:
            return UnitInvalid(self.key, fault.reason)
        return ProjectionFaulted(self.key, fault.seq, self.known.plugin, fault.reason)


class Dispatch:
    """Which cells an event of a type goes to, compiled once."""

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

    def to(self, type_name: str) -> tuple[Cell, ...]:
        """Return the cells that want events of a type."""
        return self._by_type.get(type_name, self._every)


def _settled(value: Any) -> Any:
    """Refuse what a plain function that calls an async one returns."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, CoroutineType):
        value.close()
    if inspect.isawaitable(value):
        raise TypeError("returned an awaitable; a fold and its view are plain functions")
    return value


def _is_json(state: Any) -> bool:
    """Say whether a value survives JSON: tuples, sets, NaN, structs and odd keys do not."""
    try:
        return bool(msgspec.json.decode(msgspec.json.encode(state)) == state)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return False


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
