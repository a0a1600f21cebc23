"""Which session came of which, as a flat list in the order of a tree; nothing here recurses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

import attrs

from heald_query.contracts import Relatives, SessionRecord
from heald_query.naming import near
from heald_session import SessionId, SessionNotFound


@attrs.frozen
class Node:
    """One session in a tree."""

    record: SessionRecord
    depth: int
    relation: Literal["fork", "subagent", "child"] | None
    """What it is to its parent, if it has one."""
    remark: str | None = None
    """Why it stands where it does, if not below its parent."""


def lineage(records: Sequence[SessionRecord], top: SessionId | None = None) -> list[Node]:
    """Return every session once, each below its parent; with `top` that one and its descendants.

    Siblings keep the order they come in. A session whose parent is absent stands at the top, and so
    does one of every circle.
    """
    forest = _Forest(records)
    if top is not None:
        return list(forest.below(top, None))
    nodes = [node for id_, remark in forest.roots() for node in forest.below(id_, remark)]
    for record in records:
        nodes += forest.below(record.id, "its parents form a circle")
    return nodes


def relatives_of(records: Sequence[SessionRecord], id: SessionId) -> Relatives:  # noqa: A002
    """Trace one session's lineage among all; raises `SessionNotFound` if it is not among them."""
    by_id = {record.id: record for record in records}
    if id not in by_id:
        raise SessionNotFound(id, near(id, by_id.keys()))
    ancestors: dict[SessionId, SessionRecord] = {}
    parent = _parent(by_id[id])
    while parent is not None and parent in by_id and parent != id and parent not in ancestors:
        ancestors[parent] = by_id[parent]
        parent = _parent(by_id[parent])
    missing = None if parent in by_id else parent
    _, *below = lineage(records, id)
    return Relatives(tuple(ancestors.values()), missing, tuple(node.record for node in below))


class _Forest:
    def __init__(self, records: Sequence[SessionRecord]) -> None:
        self._records = {record.id: record for record in records}
        self._children: defaultdict[str, list[SessionId]] = defaultdict(list)
        self._seen: set[SessionId] = set()
        for record in records:
            if (parent := _parent(record)) is not None:
                self._children[parent].append(record.id)

    def roots(self) -> Iterator[tuple[SessionId, str | None]]:
        for record in self._records.values():
            parent = _parent(record)
            if parent is None:
                yield record.id, None
            elif parent not in self._records:
                yield record.id, f"its parent {parent} is not here"

    def below(self, top: SessionId, remark: str | None) -> Iterator[Node]:
        waiting = [(top, 0)]
        while waiting:
            id_, depth = waiting.pop()
            if id_ in self._seen:
                continue
            self._seen.add(id_)
            record = self._records[id_]
            yield Node(record, depth, _relation(record), remark if depth == 0 else None)
            waiting += [(child, depth + 1) for child in reversed(self._children[id_])]


def _parent(record: SessionRecord) -> SessionId | None:
    return None if record.header is None else record.header.parent_session


def _relation(record: SessionRecord) -> Literal["fork", "subagent", "child"] | None:
    header = record.header
    if header is None or header.parent_session is None:
        return None
    if header.origin == "subagent":
        return "subagent"
    return "fork" if header.is_seeded else "child"
