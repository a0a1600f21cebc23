"""Which records a list has, in which order, and which of them are on its page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from heald_query.contracts import Order, Position, SessionFilter, SessionRecord
from heald_query.directories import below
from heald_query.stored_sessions import by_creation
from heald_session import SessionId

Key = tuple[int, SessionId]

ACTIVITY = "sessionListMetadata"
PRESET = "agentPreset"


def matching(records: Iterable[SessionRecord], where: SessionFilter) -> list[SessionRecord]:
    """Return the records that a filter takes by their headers: all of it but the preset."""
    conditions = _conditions(where)
    return [record for record in records if all(holds(record) for holds in conditions)]


def is_subagent(record: SessionRecord) -> bool:
    """Say whether an agent delegated to this session."""
    return record.header is not None and record.header.origin == "subagent"


def runs(preset: str) -> Callable[[SessionRecord], bool]:
    """Return the condition that a record's session runs a preset."""

    def holds(record: SessionRecord) -> bool:
        started = record.header.agent_preset if record.header is not None else None
        return bool(value_of(record, PRESET, started) == preset)

    return holds


def value_of(record: SessionRecord, key: str, unknown: Any = None) -> Any:
    """Return the value of a projection that was asked for, or `unknown`."""
    return unknown if record.projections is None else record.projections.values.get(key, unknown)


def page_of(
    records: Sequence[SessionRecord], order: Order, limit: int | None, after: Position | None
) -> list[SessionRecord]:
    """Return the records of one page in their order."""
    if order == "created":
        later = records if after is None else [r for r in records if r.position > after]
        return by_creation(later)[:limit]
    key = _latest if order == "-activity" else _newest
    if after is not None:
        place = _reversed(after)
        records = [record for record in records if key(record) > place]
    return sorted(records, key=key)[:limit]


def _conditions(where: SessionFilter) -> list[Callable[[SessionRecord], bool]]:
    conditions: list[Callable[[SessionRecord], bool]] = []
    if (subagents := where.subagents) is not None:
        conditions.append(lambda record: is_subagent(record) is subagents)
    if (live := where.live) is not None:
        conditions.append(lambda record: record.live is live)
    if where.parent_session is not None:
        conditions.append(
            lambda r: r.header is not None and r.header.parent_session == where.parent_session
        )
    if where.cwd is not None:
        conditions.append(_in(where.cwd))
    if (first := where.created_from) is not None:
        conditions.append(lambda r: r.header is not None and r.header.created_at >= first)
    if (end := where.created_before) is not None:
        conditions.append(lambda r: r.header is not None and r.header.created_at < end)
    return conditions


def _in(cwd: str) -> Callable[[SessionRecord], bool]:
    holds = below(cwd)
    return lambda record: record.header is not None and holds(record.header.cwd)


def _newest(record: SessionRecord) -> Key:
    return _reversed(record.position)


def _reversed(position: Position) -> Key:
    """Return what orders positions newest first; those of broken sessions stay last."""
    unknown = position.created_at == Position.UNKNOWN
    return position.created_at if unknown else -position.created_at, position.id


def _latest(record: SessionRecord) -> Key:
    if record.header is None:
        return Position.UNKNOWN, record.id
    told = value_of(record, ACTIVITY) or {}
    return -(told.get("last_activity") or record.header.created_at), record.id
