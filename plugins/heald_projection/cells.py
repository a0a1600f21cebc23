"""A cell: one unit's state for one log, where it is, and what went wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import attrs
import msgspec

from heald import HealdError, describe
from heald_projection.catalog import KnownUnit
from heald_projection.errors import ProjectionFaulted, UnitInvalid
from heald_projection.promises import NOT_THE_UNITS, misfit_of, refuse_awaitable
from heald_projection.unit import CellState
from heald_session import Event, Header, LogOffset, Seq, after

_UNPROVEN = object()
_BEFORE_THE_FIRST = Seq(-1)


@attrs.frozen
class CellFault:
    """Where a fold stopped, and why; None is before the first event."""

    seq: Seq | None
    reason: str


@attrs.define(eq=False)
class Cell:
    """One unit's state as of one event; what the unit raises is kept as the cell's fault."""

    known: KnownUnit
    state: Any = None
    last: Seq = _BEFORE_THE_FIRST
    """The last event it folded: neither it nor an earlier one is ever folded again."""
    fault: CellFault | None = None
    has_view: bool = attrs.field(init=False)
    apply: Callable[[Any, Event], Any] = attrs.field(init=False)
    _proven: Any = attrs.field(default=_UNPROVEN, init=False)
    """The last state that was seen to be what its unit promises."""
    _viewed: Any = attrs.field(default=_UNPROVEN, init=False)
    """The last state whose view was seen to be what the unit promises."""
    _view: Any = attrs.field(default=None, init=False)
    """The view of that state."""

    def __attrs_post_init__(self) -> None:
        # Every event comes by here, and looking further costs more than many a fold.
        self.apply = self.known.unit.apply
        self.has_view = self.known.unit.view is not None

    @classmethod
    def begin(
        cls, known: KnownUnit, header: Header, cut: LogOffset, base: CellState | None = None
    ) -> Self:
        """Make the cell of a log before its first event, or where a fitting state left off."""
        cell = cls(known)
        if known.problem is not None:
            cell.fault = CellFault(None, known.problem)
        elif base is not None and base.fits(known.unit):
            cell.state, cell.last = base.state, Seq(base.offset - 1)
        else:
            cell._start(header, cut)
        return cell

    @classmethod
    def of_kept(cls, known: KnownUnit, text: str) -> Self:
        """Make the cell of a state that is kept as JSON; raises whatever tells that it is unfit."""
        known.state.decode(text)
        cell = cls(known, msgspec.json.decode(text))
        cell._proven = cell.state
        return cell

    @property
    def key(self) -> str:
        """The key of its unit."""
        return self.known.unit.key

    @property
    def offset(self) -> LogOffset:
        """After the last event it folded."""
        return after(self.last)

    def read(self) -> Any:
        """Return the state; raises `ProjectionFaulted` or `UnitInvalid`."""
        if self.fault is not None:
            raise self._error(self.fault)
        if self.state is not self._proven:
            if (misfit := misfit_of(self.state, self.known.state)) is not None:
                raise UnitInvalid(self.key, f"its state {misfit}")
            self._proven = self.state
        return self.state

    def view(self, seq: Seq) -> Any:
        """Return what clients see at an event; raises like `read`, for a failing view too."""
        if self.state is self._viewed and self.fault is None:  # it is a function of the state
            return self._view
        view = self.known.unit.view
        state = self.read()
        if view is None:
            return None
        try:
            value = view(state)
            refuse_awaitable(value)
        except NOT_THE_UNITS:
            raise
        except BaseException as error:
            reason = f"its view raised {describe(error)}"
            raise ProjectionFaulted(self.key, seq, self.known.plugin, reason) from error
        proven = value is state and self.known.view is self.known.state
        if not proven and (misfit := misfit_of(value, self.known.view)) is not None:
            raise UnitInvalid(self.key, f"its view {misfit}")
        self._viewed, self._view = state, value
        return value

    def detached(self, offset: LogOffset) -> CellState:
        """Return a copy of the state as of `offset`; raises like `read`."""
        state = msgspec.json.decode(msgspec.json.encode(self.read()))
        return CellState(self.key, self.known.unit.state_version, offset, state)

    def _start(self, header: Header, cut: LogOffset) -> None:
        try:
            self.state = self.known.unit.initial(header, cut)
            refuse_awaitable(self.state)
            self.read()
        except UnitInvalid as error:
            self.fault = CellFault(None, f"at the start {error.reason}")
        except NOT_THE_UNITS:
            raise
        except BaseException as error:  # noqa: BLE001 - the other cells must go on
            self.fault = CellFault(None, f"its initial state raised {describe(error)}")

    def _error(self, fault: CellFault) -> HealdError:
        if fault.seq is None:
            return UnitInvalid(self.key, fault.reason)
        return ProjectionFaulted(self.key, fault.seq, self.known.plugin, fault.reason)
