"""Views of kept states: what the units of today show of them, absent where they cannot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import CoroutineType
from typing import Any, Self

import attrs
import msgspec

from heald import HealdError, Host
from heald_projection import Unit, units

Schema = msgspec.json.Decoder[Any]

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


_ABSENT = object()


@attrs.frozen
class Viewer:
    """Shows a kept value as a unit of today does."""

    key: str
    state_version: int
    _view: Callable[[Any], Any]
    _state_schema: Schema
    """Refuses what the unit could not go on from; the rest it may make into what is no JSON."""
    _view_schema: Schema

    @classmethod
    def of(cls, unit: Unit | None) -> Self | None:
        """Return the viewer of a unit that has a view."""
        if unit is None or unit.view is None:
            return None
        try:
            state = view = msgspec.json.Decoder(unit.state_schema)
            if unit.view_schema != unit.state_schema:
                view = msgspec.json.Decoder(unit.view_schema)
        except TypeError:  # msgspec does not know such a type
            return None
        return cls(unit.key, unit.state_version, unit.view, state, view)

    def show(self, value: str) -> Any:
        """Return the view, or `_ABSENT`; what is wrong is told by who folds the log."""
        try:
            self._state_schema.decode(value)
            state = _decode(value)
            view = self._view(state)
            if isinstance(view, CoroutineType):
                view.close()
            if view is state and self._view_schema is self._state_schema:
                return view
            text = _encode(view)
            self._view_schema.decode(text)
            return view if _decode(text) == view else _ABSENT
        except Exception:  # noqa: BLE001
            return _ABSENT


@attrs.frozen
class Views:
    """The viewers of some keys; usable in any thread, since views are pure."""

    _viewers: tuple[Viewer, ...]

    @classmethod
    def of(cls, host: Host, keys: Collection[str]) -> Self:
        """Look the units of these keys up."""
        found = (Viewer.of(_unit(host, key)) for key in dict.fromkeys(keys))
        return cls(tuple(viewer for viewer in found if viewer is not None))

    @property
    def versions(self) -> dict[str, int]:
        """Which versions of which keys can be shown, in the order in which `all` takes values."""
        return {viewer.key: viewer.state_version for viewer in self._viewers}

    def all(self, values: Sequence[str | None]) -> dict[str, Any]:
        """Return the views of the values that there are."""
        pairs = zip(self._viewers, values, strict=True)
        shown = {v.key: v.show(value) for v, value in pairs if value is not None}
        return {key: view for key, view in shown.items() if view is not _ABSENT}


def _unit(host: Host, key: str) -> Unit | None:
    """Return a key's unit; a key that two claim is as good as unknown here."""
    try:
        return host.vocabulary(units).get(key)
    except HealdError:
        return None
