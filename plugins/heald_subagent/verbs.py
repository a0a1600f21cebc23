"""`heald agents list`, `tree` and `show`: whom a session delegated to."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence

import click
import msgspec

from heald import Host, as_word, counted, visible
from heald.verbs import host_verb, json_option, print_json, print_table
from heald_query import SessionRecord, session_named
from heald_session import Header, SessionId, SessionNotFound, checked_id
from heald_subagent.errors import AgentNotInTree
from heald_subagent.hookspecs import subagents
from heald_subagent.portrait import Portrait, portrait_of
from heald_subagent.rows import ORIGIN, Activity, ChildRow, SubagentRow
from heald_subagent.services import corpus_of
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
    whether a subagent is live in the process of this verb: what another process runs is inactive
    here. A subagent that cannot be told is listed with the reason: `corrupt` if its log says so, or
    if it was deleted and made again just now; `unavailable` if its log could not be read this time.
    """
    service = host.scope.require(subagents)
    id = await _root(host, session)  # noqa: A001 - what it is
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
    help="Show only agents that are live in the process of this verb, or only those that are not. "
    "What another process runs is inactive here.",
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
    here; `-` stands where nothing is known. What an agent inherited from another session counts
    there. The last line is of the whole tree, whichever of its agents are shown.
    """
    if follow and (as_json or limit or after):
        raise click.UsageError("--follow cannot be combined with --json, --limit or --after")
    id = await _root(host, session)  # noqa: A001 - what it is
    if follow:
        await watched(lambda: _drawn_now(host, id, activity))
        return
    agents = await agents_below(host.scope, id)
    left = (agents if after is None else _behind(agents, after, id)).only(activity).rows
    page = left[:limit]
    if as_json:
        print_json([object_of(row, agents.cost(row)) for row in page])
        return
    lines = [*_drawn(agents, page), _total(agents, activity), *_more(left, page)]
    if sys.stdin.isatty() and sys.stdout.isatty():
        await asyncio.to_thread(click.echo_via_pager, "\n".join(lines))
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
    records = await corpus_of(host.scope).list_sessions()
    portrait = await portrait_of(host.scope, _resolved(session, records))
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
    agents = await agents_below(host.scope, root)
    return [*_drawn(agents, agents.only(activity).rows), _total(agents, activity)]


def _drawn(agents: Agents, page: Sequence[SubagentRow]) -> Iterator[str]:
    for row in page:
        yield visible(line_of(row, agents.cost(row)))


def _total(agents: Agents, activity: Activity | None) -> str:
    """Return the line of the whole tree."""
    if not agents.rows:
        return "No subagents."
    total = f"{counted(len(agents.rows), 'agent')} in all  {told(agents.total)}"
    if agents.unknown:
        total += f"  ({agents.unknown} of them not known)"
    return total if activity is None else f"{len(agents.only(activity).rows)} {activity}, {total}"


def _behind(agents: Agents, after: str, root: SessionId) -> Agents:
    """Return what is left of a tree; it is the whole one, so that activities may have changed."""
    try:
        return agents.behind(session_named(after, [row.id for row in agents.rows]))
    except SessionNotFound as error:
        raise AgentNotInTree(after, root) from error


def _more(left: Sequence[SubagentRow], page: Sequence[SubagentRow]) -> Iterator[str]:
    if len(page) < len(left):
        last = as_word(page[-1].id)
        yield f"There are more; the same command with `--after {last}` goes on."


def _tell_corrupt(portrait: Portrait) -> None:
    click.echo(
        f"{visible(portrait.id)} has no descriptor of its own that can be read, so it cannot be "
        f"resumed; `heald sessions show {as_word(portrait.id)}` shows what it logged",
        err=True,
    )


def _tell_unreadable(id: SessionId, problem: str) -> None:  # noqa: A002 - what it is
    click.echo(
        f"{visible(id)} itself cannot be read ({visible(problem)}); its subagents are shown all "
        f"the same, and `heald sessions verify {as_word(id)}` tells more",
        err=True,
    )


def _tell_hidden(count: int) -> None:
    if count:
        click.echo(
            f"{counted(count, 'session')} could not be read and may be missing here; "
            "`heald sessions list --all` says which",
            err=True,
        )


def _tell_subagent(header: Header) -> None:
    parent = header.parent_session
    whose = "" if parent is None else f" of {visible(parent)}"
    click.echo(
        f"{visible(header.id)} is itself a subagent{whose}; only its own subagents are shown, and "
        f"`heald agents show {as_word(header.id)}` shows what it is",
        err=True,
    )


async def _root(host: Host, given: str) -> SessionId:
    """Return the session whose subagents are meant, saying what its list does not.

    If it cannot be read itself, its subagents are still in headers of their own.
    """
    records = await corpus_of(host.scope).list_sessions()
    meant = _resolved(given, records)
    record = next((record for record in records if record.id == meant), None)
    _tell_hidden(sum(r.problem is not None for r in records if r.id != meant))
    if record is not None and record.problem is not None:
        _tell_unreadable(meant, record.problem)
    elif record is not None and record.header is not None and record.header.origin == ORIGIN:
        _tell_subagent(record.header)
    return meant


def _resolved(given: str, records: Iterable[SessionRecord]) -> SessionId:
    """Return the id that is meant: one that a session has, or that one names as its parent."""
    parents = (r.header.parent_session for r in records if r.header is not None)
    known = {*(record.id for record in records), *filter(None, parents)}
    return session_named(checked_id(SessionId(given)), known)


def _cells(row: SubagentRow) -> Sequence[object]:
    told: tuple[object, ...]
    if isinstance(row, ChildRow):
        told = (row.activity, row.mode, row.label, "yes" if row.has_children else "no")
    else:
        told = (row.reason, None, None, None)
    cells = (row.id, *told, row.parent_id, row.depth)
    return tuple(visible(cell) if isinstance(cell, str) else cell for cell in cells)
