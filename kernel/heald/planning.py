"""Turns rows into a plan: classes imported, configuration structured, an order to mount in.

Everything that is structurally wrong is found before anything starts and reported together. What
merely failed to import is a failed row, and so is what depends on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from heald.discovery import Discovery
from heald.errors import CompositionError, describe
from heald.faults import FailedRow, Fault
from heald.hooks import Declare, Provide
from heald.planned import Plan, PlannedRow, failed_row, plugin_of, row_fault
from heald.plugin import Plugin
from heald.requirements import in_order, resolve
from heald.rows import Row, id_fault
from heald.settings import structure
from heald.shape import shape_of
from heald.vocabulary import versions

Declarations: TypeAlias = Mapping[tuple[Declare[Any], str], PlannedRow]
"""By vocabulary and key: which row declares it."""


@attrs.frozen
class Below:
    """What a composition is planned above: the services, rows and failures of the host's."""

    provided: Collection[Provide[Any]] = ()
    declared: Declarations = attrs.field(factory=dict)
    failed: Sequence[FailedRow] = ()


def plan(rows: Sequence[Row], discovery: Discovery, below: Below | None = None) -> Plan:
    """Plan a composition; raise `CompositionError` with every fault of every row."""
    below = below if below is not None else Below()
    faults: list[Fault] = []
    failed: list[FailedRow] = []
    notices: list[str] = []
    planned: list[PlannedRow] = []
    for place, row in enumerate(_distinct(rows, faults)):
        if row.disabled:
            continue
        found = plugin_of(row, discovery)
        if isinstance(found, Fault):
            faults.append(found)
            continue
        try:
            cls = discovery.plugin_class(found.name)
        except ImportError as error:
            failed.append(failed_row(row, found, "import", str(error)))
            continue
        shape = shape_of(cls)
        faults += [row_fault(row, "plugin", f.code, f.message) for f in shape.faults]
        # Although it may have faults, for what needs it is not to be blamed as well.
        config = configure(row, cls, faults, notices) if attrs.has(cls.Config) else None
        planned.append(PlannedRow(row, place, found, cls, shape, config))
    planned, undeclared = _part_by_vocabulary(planned, below.declared)
    failed += undeclared
    needs, unable, unmet = resolve(planned, below.provided, [*failed, *below.failed], discovery)
    if unable:
        ids = {item.row for item in unable}
        planned = [item for item in planned if item.row.id not in ids]
    ordered, cycles = in_order(planned, needs)
    if faults := [*faults, *unmet, *cycles]:
        raise CompositionError(tuple(faults))
    return Plan(tuple(ordered), (*failed, *unable), needs, tuple(notices))


def _distinct(rows: Iterable[Row], faults: list[Fault]) -> list[Row]:
    """Return the first row of each id."""
    first: dict[str, Row] = {}
    for row in rows:
        other = first.setdefault(row.id, row)
        if other is not row:
            message = f"the id is taken by a row of {other.layer}"
            faults.append(row_fault(row, "id", "ROW_DUPLICATE", message))
        elif (fault := id_fault(row.id, row.layer)) is not None:
            faults.append(fault)
    return list(first.values())


def configure(
    row: Row, cls: type[Plugin[Any]], faults: list[Fault], notices: list[str]
) -> object | None:
    """Structure a row's configuration as its plugin wants it; note what is wrong with it."""
    config: object | None
    config, wrong, renamed = structure(row.config, cls.Config)
    for item in wrong:
        field = f"config.{item.path}" if item.path else "config"
        faults.append(row_fault(row, field, "CONFIG_INVALID", item.message))
    notices += [f"{row.origin_of('config')}: row {row.id}: {notice}" for notice in renamed]
    return config


def declarations(rows: Iterable[PlannedRow]) -> Declarations:
    """Return what rows that run declare."""
    return {key: item for item in rows for key in versions(item.cls)}


def _part_by_vocabulary(
    planned: Iterable[PlannedRow], below: Declarations
) -> tuple[list[PlannedRow], list[FailedRow]]:
    """Part off the rows that declare something which an earlier row declares in another version."""
    seen: dict[tuple[Declare[Any], str], PlannedRow] = {}
    kept: list[PlannedRow] = []
    failed: list[FailedRow] = []
    for item in planned:
        if not item.shape.declares:
            kept.append(item)
            continue
        try:
            own = versions(item.cls)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin's class method may even sys.exit
            failed.append(item.failed("declare", describe(error)))
            continue
        clashes = []
        for key, version in own.items():
            other = seen.get(key) or below.get(key)
            if other is not None and (theirs := versions(other.cls)[key]) != version:
                spec, name = key
                owner = f"row {other.row.id} (plugin {other.row.plugin})"
                clashes.append(f"{spec} {name!r} version {version} is version {theirs} in {owner}")
        if clashes:
            failed.append(item.failed("declare", "; ".join(clashes)))
            continue
        seen |= dict.fromkeys(own, item)
        kept.append(item)
    return kept, failed
