"""Rows that are ready to be mounted, and the plan they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from heald.discovery import PLUGINS, Discovery, Found
from heald.errors import NameConflict, NotFound
from heald.faults import FailedRow, Fault, FaultCode
from heald.plugin import Plugin
from heald.rows import Row, RowOrigin
from heald.shape import Shape


@attrs.frozen(eq=False)
class PlannedRow:
    """A row whose class is imported and whose configuration is structured."""

    row: Row
    place: int
    """Where the row stands in its composition; contributions come in this order."""
    found: Found
    cls: type[Plugin[Any]]
    shape: Shape = attrs.field(repr=False)
    """What the row's plugin class says about itself."""
    config: Any = attrs.field(repr=False)

    @property
    def origin(self) -> RowOrigin:
        """Whose the row's contributions are."""
        return RowOrigin(
            self.row.id, self.row.plugin, self.found.distribution, self.row.origin_of("plugin")
        )

    def failed(self, stage: str, reason: str, because_of: tuple[str, ...] = ()) -> FailedRow:
        """Make the record of this row's failure."""
        return failed_row(self.row, self.found, stage, reason, because_of)

    def fault(self, code: FaultCode, message: str) -> Fault:
        """Make a fault that the row's choice of plugin is to blame for."""
        return row_fault(self.row, "plugin", code, message)


@attrs.frozen
class Plan:
    """What to mount, in which order, and what cannot be."""

    rows: tuple[PlannedRow, ...] = ()
    failed: tuple[FailedRow, ...] = ()
    needs: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Which rows of the same composition each row needs, by id."""
    notices: tuple[str, ...] = ()


def plugin_of(row: Row, discovery: Discovery) -> Found | Fault:
    """Return the entry point of a row's plugin, or what is wrong with its name."""
    if (found := discovery.plugins.get(row.plugin)) is not None:
        return found
    try:
        return discovery.named(PLUGINS, row.plugin, "plugin")
    except NameConflict as error:
        return row_fault(row, "plugin", "PLUGIN_CONFLICT", str(error))
    except NotFound as error:
        return row_fault(row, "plugin", "PLUGIN_UNKNOWN", str(error))


def failed_row(
    row: Row, found: Found, stage: str, reason: str, because_of: tuple[str, ...] = ()
) -> FailedRow:
    """Make the record of a row's failure."""
    return FailedRow(row.id, row.plugin, found.distribution, stage, reason, because_of)


def row_fault(row: Row, field: str, code: FaultCode, message: str) -> Fault:
    """Make a fault of one field of a row, in the file that wrote it last."""
    return Fault(code, message, row.origin_of(field), row.id, field)
