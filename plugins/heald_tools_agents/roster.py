"""The tool `list_agents`: the listing's rows, in words."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from heald_agent import Tool, ToolContext
from heald_subagent import ChildRow, SubagentRow, subagents


class ListArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the model says to list subagents."""

    scope: Annotated[
        Literal["children", "descendants"],
        Meta(description="children: your own. descendants: theirs as well, with their parents."),
    ] = "children"


async def _list(arguments: ListArguments, context: ToolContext) -> str:
    session = context.agent.session
    service = session.scope.require(subagents)
    if arguments.scope == "children":
        rows = await service.list_children(session.id, cancel=context.cancel)
    else:
        rows = await service.list_descendants(session.id, cancel=context.cancel)
    lines = [_line(row) for row in rows if not _is_one_shot(row)]
    return "\n".join(lines) or "(no subagents)"


def _is_one_shot(row: SubagentRow) -> bool:
    return isinstance(row, ChildRow) and row.mode == "one-shot"


def _line(row: SubagentRow) -> str:
    if isinstance(row, ChildRow):
        told = f"{row.id}: {row.label!r}, {row.activity}"
    else:
        told = f"{row.id}: cannot be read ({row.reason})"
    return told if row.parent_id is None else f"{told}, child of {row.parent_id}"


LIST_AGENTS = Tool(
    name="list_agents",
    description=(
        "List your continuable subagents: id, label, and whether each is running (live, so that "
        "wait_agents can wait for it) or inactive (a message resumes it). One-shot subagents, "
        "which are done once they have answered, are left out."
    ),
    arguments=ListArguments,
    run=_list,
    parallel=True,
    changes=False,
)
