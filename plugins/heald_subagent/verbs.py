"""`heald agents list`: the subagents of a session."""

from __future__ import annotations

from collections.abc import Sequence

import click
import msgspec

from heald import Host
from heald.verbs import host_verb, json_option, print_json, print_table, visible
from heald_query import session_named, session_query
from heald_session import SessionId
from heald_subagent.hookspecs import subagents
from heald_subagent.rows import ChildRow, SubagentRow

_HEADERS = ("id", "activity", "mode", "label", "has children")


@click.command("list")
@click.argument("session")
@click.option("--descendants", is_flag=True, help="Show the whole tree, parents first.")
@json_option
@host_verb
async def list_agents(host: Host, session: str, *, descendants: bool, as_json: bool) -> None:
    """List the subagents of a session.

    SESSION is an id, or the beginning of one as long as only one fits. `activity` says only
    whether a subagent is live in this process. A subagent that cannot be told is listed with the
    reason: `corrupt` will stay so, `unavailable` may be readable the next time.
    """
    service = host.scope.require(subagents)
    id = await _resolved(host, session)  # noqa: A001 - what it is
    rows = await (service.list_descendants(id) if descendants else service.list_children(id))
    if as_json:
        print_json([msgspec.to_builtins(row) for row in rows])
    elif not rows:
        click.echo("No subagents.")
    else:
        headers = (*_HEADERS, "parent", "depth") if descendants else _HEADERS
        print_table(headers, [_cells(row)[: len(headers)] for row in rows])


async def _resolved(host: Host, given: str) -> SessionId:
    """Return the id that is meant: one that a session has, or that one names as its parent."""
    records = await host.scope.require(session_query).list_sessions()
    parents = (r.header.parent_session for r in records if r.header is not None)
    return session_named(given, {*(record.id for record in records), *filter(None, parents)})


def _cells(row: SubagentRow) -> Sequence[object]:
    told: tuple[object, ...]
    if isinstance(row, ChildRow):
        told = (row.activity, row.mode, row.label, "yes" if row.has_children else "no")
    else:
        told = (row.reason, None, None, None)
    cells = (row.id, *told, row.parent_id, row.depth)
    return tuple(visible(cell) if isinstance(cell, str) else cell for cell in cells)
