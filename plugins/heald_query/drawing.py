"""How a tree of sessions is told: indented lines for people, objects for programs."""

from __future__ import annotations

from heald_query.lineage import Node
from heald_query.selection import value_of

KEYS = ("title", "subagent")
"""The projections that a node's names are taken from."""
_DRAWN = 20
"""How many levels of a tree are drawn as such; deeper ones say their depth."""


def line_of(node: Node) -> str:
    """Return a node for people."""
    record = node.record
    cells: list[str | None] = [record.id, node.relation]
    if identity := value_of(record, "subagent"):
        cells.append(identity.get("label"))
    if title := value_of(record, "title"):
        cells.append(title["text"])
    cells.append(node.remark or record.problem)
    depth = f"[{node.depth}] " if node.depth > _DRAWN else ""
    return "  " * min(node.depth, _DRAWN) + depth + "  ".join(filter(None, cells))


def object_of_node(node: Node) -> dict[str, object]:
    """Return a node for programs."""
    record, header = node.record, node.record.header
    return {
        "id": record.id,
        "parent_session": header.parent_session if header is not None else None,
        "depth": node.depth,
        "relation": node.relation,
        "created_at": header.created_at if header is not None else None,
        "title": (value_of(record, "title") or {}).get("text"),
        "label": (value_of(record, "subagent") or {}).get("label"),
        "remark": node.remark,
        "problem": record.problem,
    }
