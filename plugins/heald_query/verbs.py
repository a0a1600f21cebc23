"""The verbs `heald sessions list`, `show` and `tree`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence

import attrs
import click
import msgspec

from heald import Host
from heald.verbs import host_verb, json_option, print_json, print_table
from heald_persistence import Damage, session_persistence
from heald_query.contracts import SessionRecord
from heald_query.hookspecs import session_query
from heald_query.lineage import Node, lineage
from heald_query.naming import find_session, session_named
from heald_query.pager import page
from heald_query.showing import Selection, followed, shown
from heald_query.transcript import lines_of, lines_of_damage, local_time, visible
from heald_session import Event, LogOffset

_KEYS = ("agentPreset", "title", "sessionStats")
_TREE_KEYS = ("title", "subagent")
_COUNT = click.IntRange(min=0)
_DRAWN = 20
"""How many levels of a tree are drawn as such; deeper ones say their depth."""

_NOTHING = 'No sessions yet; `heald run "TASK"` makes one.'


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Show the sessions of subagents too.")
@json_option
@host_verb
async def list_sessions(host: Host, *, everything: bool, as_json: bool) -> None:
    """List sessions, newest first."""
    query = host.scope.require(session_query)
    records = sorted(await query.list_sessions(keys=_KEYS), key=_newest_first)
    shown = [record for record in records if everything or not _is_subagent(record)]
    if as_json:
        print_json([_object(record) for record in shown])
        return
    _print_records(shown, hidden=len(records) - len(shown))
    for record in shown:
        if record.problem is not None:
            click.echo(visible(f"{record.id}: {record.problem}"), err=True)


@click.command("show")
@click.argument("session")
@click.option("--types", multiple=True, metavar="TYPE[,TYPE...]", help="Show only these events.")
@click.option("--from", "start", type=_COUNT, metavar="SEQ", help="Begin at this event.")
@click.option("--limit", type=_COUNT, metavar="N", help="Show at most so many events.")
@click.option("--tail", type=_COUNT, metavar="N", help="Show the last N events.")
@click.option("--follow", is_flag=True, help="Go on with what is written later, until Ctrl-C.")
@click.option("--until-turn-end", is_flag=True, help="Follow until no turn is open.")
@json_option
@host_verb
async def show_session(
    host: Host,
    session: str,
    *,
    types: tuple[str, ...],
    start: int | None,
    limit: int | None,
    tail: int | None,
    follow: bool,
    until_turn_end: bool,
    as_json: bool,
) -> int:
    """Show a session's log.

    SESSION is an id, or the beginning of one as long as only one fits. A session may be shown and
    followed while another process writes it. What is damaged is shown as a gap, and the exit code
    is then 1. With --json the events are an array; with --follow one object a line.
    """
    following = follow or until_turn_end
    if tail is not None and (start is not None or limit is not None):
        raise click.UsageError("--tail cannot be combined with --from or --limit")
    if limit is not None and following:
        raise click.UsageError("--limit cannot be combined with --follow")
    selection = Selection(
        start=LogOffset(start or 0),
        limit=limit,
        tail=tail,
        types=frozenset(name for option in types for name in option.split(",") if name),
    )
    storage = host.scope.require(session_persistence)
    id_ = await find_session(host.scope.require(session_query), session)
    if following:
        later = followed(storage, id_, selection, until_turn_end=until_turn_end)
        damaged = await _print(later, _json_line if as_json else _text)
    else:
        async with await storage.read(id_) as log:
            damaged = await _print_once(shown(log, selection), as_json=as_json)
    if damaged:
        click.echo(f"{id_} is damaged: `heald sessions verify {id_}` says how", err=True)
    return 1 if damaged else 0


@click.command("tree")
@click.argument("session", required=False)
@json_option
@host_verb
async def show_tree(host: Host, session: str | None, *, as_json: bool) -> None:
    """Show which sessions came of which: forks, and what agents delegated.

    With SESSION, an id or the beginning of one, show that one and what came of it. A session whose
    parent is not here stands at the top and names it.
    """
    records = await host.scope.require(session_query).list_sessions(keys=_TREE_KEYS)
    top = None if session is None else session_named(session, [record.id for record in records])
    nodes = lineage(records, top)
    if as_json:
        print_json([_node_object(node) for node in nodes])
        return
    for node in nodes:
        click.echo(visible(_node_line(node)))
    if not nodes:
        click.echo(_NOTHING)


async def _print_once(items: AsyncIterator[Event | Damage], *, as_json: bool) -> bool:
    """Print items that end, people's through a pager on a terminal; say if any is damage."""
    if as_json:
        return await _print_array(items)
    if sys.stdin.isatty() and sys.stdout.isatty():
        return await page(items, _text)
    return await _print(items, _text)


async def _print(
    items: AsyncIterator[Event | Damage], told: Callable[[Event | Damage], str]
) -> bool:
    damaged = False
    async for item in items:
        damaged = damaged or isinstance(item, Damage)
        click.echo(told(item))
    return damaged


async def _print_array(items: AsyncIterator[Event | Damage]) -> bool:
    """Print a JSON array item by item, so that a long log is never in memory."""
    damaged, before = False, "[\n"
    async for item in items:
        damaged = damaged or isinstance(item, Damage)
        click.echo(before + _json_line(item), nl=False)
        before = ",\n"
    click.echo("[]" if before == "[\n" else "\n]")
    return damaged


def _text(item: Event | Damage) -> str:
    return "\n".join(lines_of_damage(item) if isinstance(item, Damage) else lines_of(item))


def _json_line(item: Event | Damage) -> str:
    if isinstance(item, Event):
        return msgspec.json.encode(item).decode()
    facts = attrs.asdict(item, filter=attrs.filters.exclude("types"))
    return msgspec.json.encode({"damage": facts}).decode()


def _node_line(node: Node) -> str:
    record = node.record
    values = record.projections.values if record.projections is not None else {}
    cells: list[str | None] = [record.id, node.relation]
    if identity := values.get("subagent"):
        cells.append(identity.get("label"))
    if title := values.get("title"):
        cells.append(title["text"])
    cells.append(node.remark or record.problem)
    depth = f"[{node.depth}] " if node.depth > _DRAWN else ""
    return "  " * min(node.depth, _DRAWN) + depth + "  ".join(filter(None, cells))


def _node_object(node: Node) -> dict[str, object]:
    header = node.record.header
    values = node.record.projections.values if node.record.projections is not None else {}
    return {
        "id": node.record.id,
        "parent_session": header.parent_session if header is not None else None,
        "depth": node.depth,
        "relation": node.relation,
        "created_at": header.created_at if header is not None else None,
        "title": (values.get("title") or {}).get("text"),
        "label": (values.get("subagent") or {}).get("label"),
        "remark": node.remark,
        "problem": node.record.problem,
    }


def _newest_first(record: SessionRecord) -> tuple[bool, int, str]:
    header = record.header
    return (header is None, 0 if header is None else -header.created_at, record.id)


def _is_subagent(record: SessionRecord) -> bool:
    return record.header is not None and record.header.origin == "subagent"


def _print_records(shown: Sequence[SessionRecord], *, hidden: int) -> None:
    rows = [_row(record) for record in shown if record.header is not None]
    if rows:
        print_table(("id", "created", "kept", "preset", "turns", "title", "cwd"), rows)
    elif hidden:
        click.echo(f"No sessions but {hidden} of subagents; `--all` shows them.")
    elif not shown:
        click.echo(_NOTHING)


def _row(record: SessionRecord) -> tuple[object, ...]:
    header = record.header
    values = record.projections.values if record.projections is not None else {}
    stats, title = values.get("sessionStats"), values.get("title")
    cells = (
        record.id,
        local_time(header.created_at) if header is not None else None,
        "live" if record.live else "stored",
        values.get("agentPreset"),
        stats["turns"] if stats is not None else None,
        title["text"] if title is not None else None,
        header.cwd if header is not None else None,
    )
    return tuple(visible(cell) if isinstance(cell, str) else cell for cell in cells)


def _object(record: SessionRecord) -> dict[str, object]:
    header, projections = record.header, record.projections
    return {
        "id": record.id,
        "created_at": header.created_at if header is not None else None,
        "cwd": header.cwd if header is not None else None,
        "parent_session": header.parent_session if header is not None else None,
        "origin": header.origin if header is not None else None,
        "delegation_depth": header.delegation_depth if header is not None else None,
        "agent_preset": header.agent_preset if header is not None else None,
        "live": record.live,
        "stored": record.stored,
        "problem": record.problem,
        "projections": None
        if projections is None
        else {"as_of_seq": projections.as_of_seq, "values": projections.values},
    }
