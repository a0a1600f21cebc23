"""`heald agents list`, `tree` and `show`: whom a session delegated to."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence

import click
import msgspec

from heald import Host, visible
from heald.verbs import host_verb, json_option, print_json, print_table
from heald_query import session_named, session_query
from heald_session import SessionId, checked_id
from heald_subagent.hookspecs import subagents
from heald_subagent.portrait import Portrait, portrait_of
from heald_subagent.rows import Activity, ChildRow, SubagentRow
from heald_subagent.tree import Agents, agents_below, line_of, object_of, told
from heald_subagent.watching import watched

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


@click.command("tree")
@click.argument("session")
@click.option(
    "--activity",
    type=click.Choice(["running", "inactive"]),
    help="Show only agents that are live in this process, or only those that are not.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show at most so many.")
@click.option("--after", metavar="ID", help="Begin behind this agent, the last one shown before.")
@click.option("--follow", is_flag=True, help="Go on showing what changes, until Ctrl-C.")
@json_option
@host_verb
async def show_tree(
    host: Host,
    session: str,
    *,
    activity: Activity | None,
    limit: int | None,
    after: str | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Draw the agents below a session: what each is, how long it worked, and its tokens.

    SESSION is an id, or the beginning of one as long as only one fits. Time and tokens come from
    what is known without reading a log, as of the last checkpoint of a session that is not live
    here; `-` stands where nothing is known. The last line is of the whole tree.
    """
    if follow and (as_json or limit or after):
        raise click.UsageError("--follow cannot be combined with --json, --limit or --after")
    id = await _resolved(host, session)  # noqa: A001 - what it is
    if follow:
        await watched(lambda: _drawn_now(host, id, activity))
        return
    agents = (await agents_below(host.scope, id)).only(activity)
    page = _page(agents.rows, limit, after)
    if as_json:
        print_json([object_of(row, agents.cost(row)) for row in page])
        return
    lines = [*_drawn(agents, page), *_more(agents.rows, page, session)]
    if sys.stdin.isatty() and sys.stdout.isatty():
        await asyncio.to_thread(click.echo_via_pager, "\n".join(lines) + "\n")
    else:
        click.echo("\n".join(lines))


@click.command("show")
@click.argument("session")
@json_option
@host_verb
async def show_agent(host: Host, session: str, *, as_json: bool) -> int:
    """Show what one subagent is: its mode, its parent, what it may use, and what it took.

    SESSION is an id, or the beginning of one as long as only one fits. A subagent whose descriptor
    cannot be read is shown with what its header says, and the exit code is then 1.
    """
    portrait = await portrait_of(host.scope, await _resolved(host, session))
    if as_json:
        print_json(portrait.as_json())
    else:
        for name, value in portrait.lines():
            click.echo(f"{name:<12}{visible(value)}")
    if portrait.identity is None:
        _tell_corrupt(portrait)
        return 1
    return 0


async def _drawn_now(host: Host, root: SessionId, activity: Activity | None) -> list[str]:
    agents = (await agents_below(host.scope, root)).only(activity)
    return [*_drawn(agents, agents.rows)]


def _drawn(agents: Agents, page: Sequence[SubagentRow]) -> Iterator[str]:
    """Yield the lines of a page, and the one of the whole tree."""
    for row in page:
        yield visible(line_of(row, agents.cost(row)))
    many = "1 agent" if len(agents.rows) == 1 else f"{len(agents.rows)} agents"
    if not agents.rows:
        yield "No subagents."
    elif agents.unknown:
        yield f"{many} in all  {told(agents.total)}  ({agents.unknown} of them not known)"
    else:
        yield f"{many} in all  {told(agents.total)}"


def _page(
    rows: Sequence[SubagentRow], limit: int | None, after: str | None
) -> Sequence[SubagentRow]:
    begin = 0
    if after is not None:
        named = session_named(after, [row.id for row in rows])
        begin = 1 + next(n for n, row in enumerate(rows) if row.id == named)
    return rows[begin:] if limit is None else rows[begin : begin + limit]


def _more(rows: Sequence[SubagentRow], page: Sequence[SubagentRow], session: str) -> Iterator[str]:
    if page and page[-1] is not rows[-1]:
        yield f"More: heald agents tree {session} --limit {len(page)} --after {page[-1].id}"


def _tell_corrupt(portrait: Portrait) -> None:
    click.echo(
        f"{portrait.id} has no descriptor of its own that can be read, so it cannot be resumed; "
        f"`heald sessions show {portrait.id}` shows what it logged",
        err=True,
    )


def _tell_unreadable(id: SessionId, problem: str) -> None:  # noqa: A002 - what it is
    click.echo(
        f"{visible(id)} itself cannot be read ({visible(problem)}); its subagents are shown all "
        f"the same, and `heald sessions verify {visible(id)}` tells more",
        err=True,
    )


async def _resolved(host: Host, given: str) -> SessionId:
    """Return the id that is meant: one that a session has, or that one names as its parent.

    Says if that session cannot be read itself: its subagents are in headers of their own.
    """
    records = await host.scope.require(session_query).list_sessions()
    parents = (r.header.parent_session for r in records if r.header is not None)
    known = {*(record.id for record in records), *filter(None, parents)}
    meant = session_named(checked_id(SessionId(given)), known)
    for record in records:
        if record.id == meant and record.problem is not None:
            _tell_unreadable(meant, record.problem)
    return meant


def _cells(row: SubagentRow) -> Sequence[object]:
    told: tuple[object, ...]
    if isinstance(row, ChildRow):
        told = (row.activity, row.mode, row.label, "yes" if row.has_children else "no")
    else:
        told = (row.reason, None, None, None)
    cells = (row.id, *told, row.parent_id, row.depth)
    return tuple(visible(cell) if isinstance(cell, str) else cell for cell in cells)
