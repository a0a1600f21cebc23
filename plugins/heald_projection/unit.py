"""Units: folds of a session's events into one small JSON value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import msgspec

from heald_session import Event, Header, LogOffset


@attrs.frozen(kw_only=True)
class Unit:
    """One fold, declared through `heald_projection.units`.

    `initial` and `apply` are pure and synchronous, and the state is plain JSON that `apply` never
    changes in place: it returns a new state, or the same object to say that nothing changed. What a
    unit makes of a log may not depend on anything but the header, the cut and the events.
    """

    key: str
    """The name the projection is selected by; it stays as written."""
    state_version: int
    """Raised when a stored state can no longer be gone on from."""
    event_types: frozenset[str] | None
    """The types the fold wants; None is every type."""
    initial: Callable[[Header, LogOffset], Any]
    """Make the state before the first event from the header and the cut."""
    apply: Callable[[Any, Event], Any]
    """Return the state after an event."""
    view: Callable[[Any], Any] | None = None
    """Make the value that clients see; without it the projection is the host's alone."""
    state_schema: Any = Any
    """What msgspec must be able to convert a stored state to."""
    view_schema: Any = Any
    """What msgspec must be able to convert the view to."""


class Snapshot(msgspec.Struct, frozen=True):
    """Views of several projections at one cut; a struct, since every row of a list has one."""

    as_of_seq: int
    """The last event they include; -1 when there is none."""
    values: dict[str, Any]
    """Views by key; a key that no unit has is absent."""


@attrs.frozen
class CellState:
    """A unit's state for one session: what a checkpoint keeps."""

    key: str
    state_version: int
    offset: LogOffset
    """How many events it has folded."""
    state: Any

    def fits(self, unit: Unit) -> bool:
        """Say whether the unit can go on from here: key, version and schema are its own."""
        if (self.key, self.state_version) != (unit.key, unit.state_version) or self.offset < 0:
            return False
        try:
            msgspec.json.decode(msgspec.json.encode(self.state), type=unit.state_schema)
        except Exception:  # noqa: BLE001 - a schema's own checks may raise anything
            return False
        return True
