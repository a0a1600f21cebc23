"""What is asked of the full-text index: the best documents, and how many there are."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import apsw
import attrs

from heald_query.directories import below
from heald_query.search.contracts import Role, SearchFilter
from heald_query.search.numbering import INHERITED, ROLE, ROLES, SUBAGENT, first_of
from heald_query.search.typed_text import Typed
from heald_session import Seq, SessionId

_DOCUMENTS = """
SELECT documents.number, sessions.id, seq, time, text
FROM json_each(?) CROSS JOIN documents ON documents.number = value
CROSS JOIN sessions ON sessions.number = session
"""
_OF_SESSIONS = """
(SELECT session FROM documents WHERE number = texts.rowid) IN
    (SELECT number FROM sessions WHERE {} IN (SELECT value FROM json_each(?)))
"""


def _latest_first(value: int) -> int:
    return -value


@attrs.frozen(order=True)
class Found:
    """A document that was found; of equally good ones the latest is first."""

    time: int = attrs.field(order=_latest_first)
    session: SessionId
    seq: Seq = attrs.field(order=_latest_first)
    role: Role
    text: str


def find(
    connection: apsw.Connection, typed: Typed, where: SearchFilter, limit: int
) -> tuple[Sequence[Found], int]:
    """Return the best documents, and how many fit."""
    numbers, total = find_numbers(connection, typed, where, limit)
    documents = _documents(connection, [number for _, number in numbers])
    found = sorted((rank, documents[number]) for rank, number in numbers if number in documents)
    return [document for _, document in found], total


def find_numbers(
    connection: apsw.Connection, typed: Typed, where: SearchFilter, limit: int
) -> tuple[Sequence[tuple[float, int]], int]:
    """Return the ranks and numbers of the best documents, and how many fit."""
    if typed.expression is None:
        return [], 0
    conditions, given = _conditions(connection, where)
    matching = f"FROM texts WHERE {' AND '.join(['texts MATCH ?', *conditions])}"
    values = (typed.expression, *given)
    # Counting is a second look at what fits, which is cheap but for words that must stand together.
    counted = "count(*) OVER ()" if typed.has_phrases else "NULL"
    best = f"SELECT rank, rowid, {counted} {matching} ORDER BY rank, rowid DESC LIMIT ?"
    rows: list[Any] = connection.execute(best, (*values, max(0, limit))).fetchall()
    found = [(rank, number) for rank, number, _ in rows]
    if len(rows) < limit:
        return found, len(rows)
    total: int | None = rows[0][2] if rows else None
    if total is None:
        total = connection.execute(f"SELECT count(*) {matching}", values).get
    return found, total or 0


def _conditions(connection: apsw.Connection, where: SearchFilter) -> tuple[list[str], list[object]]:
    conditions = list(_conditions_of_number(where))
    values: list[object] = []
    if where.sessions is not None:
        conditions.append(_OF_SESSIONS.format("id"))
        values.append(_list(where.sessions))
    if where.cwd is not None:
        inside, known = below(where.cwd), connection.execute("SELECT DISTINCT cwd FROM sessions")
        conditions.append(_OF_SESSIONS.format("cwd"))
        values.append(_list([cwd for (cwd,) in known if inside(cwd)]))
    return conditions, values


def _conditions_of_number(where: SearchFilter) -> Iterator[str]:
    if where.roles is not None:
        roles = ", ".join(str(ROLES.index(role)) for role in sorted(where.roles))
        yield f"rowid & {ROLE} IN ({roles})"
    if where.since is not None:
        yield f"rowid >= {first_of(where.since)}"
    if where.subagents is not None:
        yield f"rowid & {SUBAGENT} = {SUBAGENT if where.subagents else 0}"
    if where.inherited is not None:
        yield f"rowid & {INHERITED} = {INHERITED if where.inherited else 0}"


def _documents(connection: apsw.Connection, numbers: Sequence[int]) -> dict[int, Found]:
    rows: Iterator[Any] = connection.execute(_DOCUMENTS, (json.dumps(numbers),))
    return {
        number: Found(time, SessionId(id_), Seq(seq), ROLES[number & ROLE], text)
        for number, id_, seq, time, text in rows
    }


def _list(ids: Collection[str]) -> str:
    return json.dumps(list(ids))
