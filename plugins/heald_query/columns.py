"""What a list shows of a session: columns that people choose from, an object for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import click

from heald import told_time, visible
from heald_query.contracts import SessionRecord
from heald_query.selection import value_of
from heald_session import Header

OBJECT_KEYS = ("agentPreset", "title", "sessionStats", "sessionListMetadata")
"""The projections that programs get beside a record."""
USUAL = ("id", "created", "kept", "preset", "turns", "title", "cwd")


@attrs.frozen
class Column:
    """One column: what is in it, and the projection it is taken from."""

    told: Callable[[SessionRecord, Header], object]
    key: str | None = None


def chosen(text: str | None) -> Mapping[str, Column]:
    """Return the columns of a list like `id,title`; raise `click.BadParameter` naming all."""
    names = USUAL if text is None else [name.strip() for name in text.split(",") if name.strip()]
    every = ", ".join(COLUMNS)
    if unknown := [name for name in names if name not in COLUMNS]:
        told = f"there is no column {unknown[0]!r}; there are {every}"
        raise click.BadParameter(told, param_hint="'--columns'")
    if not names:
        raise click.BadParameter(f"name at least one of {every}", param_hint="'--columns'")
    return {name: COLUMNS[name] for name in names}


def keys_of(columns: Mapping[str, Column]) -> Sequence[str]:
    """Return the projections that columns are taken from."""
    return [*dict.fromkeys(column.key for column in columns.values() if column.key is not None)]


def cells_of(record: SessionRecord, columns: Mapping[str, Column]) -> Sequence[object]:
    """Return what a record has in each column."""
    header = record.header
    cells = [None if header is None else column.told(record, header) for column in columns.values()]
    return [visible(cell) if isinstance(cell, str) else cell for cell in cells]


def object_of(record: SessionRecord) -> dict[str, object]:
    """Return what programs get of a record."""
    header, projections = record.header, record.projections
    return {
        "id": record.id,
        "position": str(record.position),
        "created_at": header.created_at if header is not None else None,
        "cwd": header.cwd if header is not None else None,
        "parent_session": header.parent_session if header is not None else None,
        "origin": header.origin if header is not None else None,
        "delegation_depth": header.delegation_depth if header is not None else None,
        "preset": None if header is None else _preset(record, header),
        "live": record.live,
        "stored": record.stored,
        "problem": record.problem,
        "projections": None
        if projections is None
        else {"as_of_seq": projections.as_of_seq, "values": projections.values},
    }


def _member(key: str, name: str) -> Callable[[SessionRecord, Header], Any]:
    return lambda record, _: (value_of(record, key) or {}).get(name)


def _preset(record: SessionRecord, header: Header) -> Any:
    return value_of(record, "agentPreset", header.agent_preset)


def _active(record: SessionRecord, header: Header) -> str:
    last = (value_of(record, "sessionListMetadata") or {}).get("last_activity")
    return told_time(last or header.created_at)


COLUMNS: Mapping[str, Column] = {
    "id": Column(lambda record, _: record.id),
    "created": Column(lambda _, header: told_time(header.created_at)),
    "active": Column(_active, "sessionListMetadata"),
    "kept": Column(lambda record, _: "live" if record.live else "stored"),
    "preset": Column(_preset, "agentPreset"),
    "turns": Column(_member("sessionStats", "turns"), "sessionStats"),
    "title": Column(_member("title", "text"), "title"),
    "prompt": Column(_member("sessionListMetadata", "last_prompt"), "sessionListMetadata"),
    "cwd": Column(lambda _, header: header.cwd),
    "parent": Column(lambda _, header: header.parent_session),
    "origin": Column(lambda _, header: header.origin),
    "depth": Column(lambda _, header: header.delegation_depth),
}
