"""Views of kept states: what the units of today show of them, absent where they cannot."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Self

import attrs

from heald import HealdError
from heald_projection.catalog import Catalog, KnownUnit
from heald_projection.cells import Cell

_ABSENT = object()


@attrs.frozen
class UnitViews:
    """Shows kept states as cells of these units would; in any thread, since views are pure."""

    _units: tuple[KnownUnit, ...]

    @classmethod
    def of_keys(cls, catalog: Catalog, keys: Collection[str]) -> Self:
        """Look the units of these keys up."""
        return cls(tuple(_shown_units(catalog, keys)))

    @property
    def versions(self) -> Mapping[str, int]:
        """Which state version of which keys can be shown."""
        return {known.unit.key: known.unit.state_version for known in self._units}

    def of(self, states: Sequence[str | None]) -> dict[str, Any]:
        """Return the views of the states that there are."""
        pairs = zip(self._units, states, strict=True)
        shown = {known.unit.key: _view(known, text) for known, text in pairs if text is not None}
        return {key: view for key, view in shown.items() if view is not _ABSENT}


def _shown_units(catalog: Catalog, keys: Collection[str]) -> Iterator[KnownUnit]:
    for key in dict.fromkeys(keys):
        try:
            known = catalog.find(key)
        except HealdError:  # two claim it
            continue
        if known is not None and known.problem is None and known.unit.view is not None:
            yield known


def _view(known: KnownUnit, text: str) -> Any:
    try:
        cell = Cell.of_kept(known, text)
        return cell.view(cell.last)
    except Exception:  # noqa: BLE001 - it is kept by somebody who may not know the unit of today
        return _ABSENT
