"""The verbs `heald sessions list`, `show` and `tree`."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import attrs
import click
import msgspec

from heald import Host, as_word
from heald.verbs import host_verb, json_option, print_json, print_table
from heald_persistence import Damage, session_persistence
from heald_query.asked_types import TypesAsked
from heald_query.columns import OBJECT_KEYS, cells_of, chosen, keys_of, object_of
from heald_query.contracts import Order, Position, SessionFilter, SessionQuery, SessionRecord
from heald_query.drawing import KEYS, line_of, object_of_node
from heald_query.hookspecs import session_query
from heald_query.lineage import lineage
from heald_query.moments import Moment, since_option, typed_moment, typed_position
from heald_query.naming import find_session, session_named
from heald_query.pager import page
from heald_query.showing import Selection, followed, shown
from heald_query.states import values_at
from heald_query.transcript import lines_of, lines_of_damage, visible
from heald_session import Event, LogOffset, Seq, SessionId

_COUNT = click.IntRange(min=0)
_ORDERS: dict[str, Order] = {"created": "-created", "oldest": "created", "activity": "-activity"}
_AT_ONCE = 50
"""How many sessions people are shown who do not say how many."""

_NOTHING = 'No sessions yet; `heald run "TASK"` makes one.'


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Show the sessions of subagents too.")
@click.option("--cwd", type=click.Path(path_type=Path), metavar="DIR", help="Only in or below it.")
@click.option("--preset", metavar="ID", help="Only those that run this preset.")
@click.option("--parent", metavar="SESSION", help="Only what came of this one, subagents too.")
@since_option
@click.option("--until", metavar="WHEN", callback=typed_moment, help="Only those before then.")
@click.option("--order", type=click.Choice([*_ORDERS]), default="created", show_default=True)
@click.option("--columns", metavar="NAME[,NAME...]", help="What to show, in which order.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show at most so many.")
@click.option("--after", metavar="POSITION", callback=typed_position, help="Go on after this one.")
@json_option
@host_verb
async def list_sessions(
    host: Host,
    *,
    everything: bool,
    cwd: Path | None,
    preset: str | None,
    parent: str | None,
    since: Moment | None,
    until: Moment | None,
    order: str,
    columns: str | None,
    limit: int | None,
    after: Position | None,
    as_json: bool,
) -> None:
    """List sessions, newest first.

    People are shown 50 at once, and told how to see the next. With --order oldest the first comes
    first, with activity the one in which something happened last. --since and --until are about
    when a session was created.
    """
    if order == "activity" and after is not None:
        raise click.UsageError("--after needs an order that does not change; activity does")
    if columns is not None and as_json:
        raise click.UsageError("--columns is for people; with --json there is everything")
    shown_columns = chosen(columns)
    query, now = host.scope.require(session_query), host.now()
    where = SessionFilter(
        subagents=None if everything or parent is not None else False,
        parent_session=None if parent is None else await _parent_named(query, parent),
        cwd=None if cwd is None else _whole(cwd),
        preset=preset,
        created_from=None if since is None else since(now),
        created_before=None if until is None else until(now),
    )
    most = limit or (None if as_json else _AT_ONCE)
    records = await query.list_sessions(
        where,
        order=_ORDERS[order],
        limit=None if most is None else most + 1,
        after=after,
        keys=OBJECT_KEYS if as_json else keys_of(shown_columns),
    )
    found = records[:most]
    if as_json:
        print_json([object_of(record) for record in found])
        return
    rows = [cells_of(record, shown_columns) for record in found if record.header is not None]
    if rows:
        print_table(tuple(shown_columns), rows)
    elif not found:
        click.echo(await _why_nothing(query, where, after))
    for record in found:
        if record.problem is not None:
            click.echo(visible(f"{record.id}: {record.problem}"), err=True)
    if len(records) > len(found):
        click.echo(_there_are_more(found, order), err=True)


@click.command("show")
@click.argument("session")
@click.option("--types", multiple=True, metavar="TYPE[,TYPE...]", help="Show only these events.")
@click.option("--from", "start", type=_COUNT, metavar="SEQ", help="Begin at this event.")
@click.option("--limit", type=_COUNT, metavar="N", help="Show at most so many events.")
@click.option("--tail", type=_COUNT, metavar="N", help="Show the last N events.")
@click.option("--follow", is_flag=True, help="Go on with what is written later, until Ctrl-C.")
@click.option("--until-turn-end", is_flag=True, help="Follow until no turn is open.")
@click.option("--projection", multiple=True, metavar="KEY", help="Show this instead of events.")
@click.option("--at", type=_COUNT, metavar="SEQ", help="As it was just after this event.")
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
    projection: tuple[str, ...],
    at: int | None,
    as_json: bool,
) -> int:
    """Show a session's log, or with --projection what is made of it.

    SESSION is an id, or the beginning of one as long as only one fits. A session may be shown and
    followed while another process writes it. What is damaged is shown as a gap, and the exit code
    is then 1. With --json the events are an array; with --follow one object a line.
    """
    following = follow or until_turn_end
    events_asked = bool(types or following) or any(n is not None for n in (start, limit, tail))
    if tail is not None and (start is not None or limit is not None):
        raise click.UsageError("--tail cannot be combined with --from or --limit")
    if limit is not None and following:
        raise click.UsageError("--limit cannot be combined with --follow")
    if projection and events_asked:
        raise click.UsageError("--projection is shown instead of events; only --at goes with it")
    if at is not None and not projection:
        raise click.UsageError("--at needs --projection: events are chosen by --from")
    id_ = await find_session(host.scope.require(session_query), session)
    if projection:
        return await _show_projections(host, id_, projection, at, as_json=as_json)
    asked = TypesAsked(name for option in types for name in option.split(",") if name)
    selection = Selection(
        start=LogOffset(start or 0), limit=limit, tail=tail, types=frozenset(asked.names)
    )
    storage = host.scope.require(session_persistence)
    if following:
        later = asked.noting(followed(storage, id_, selection, until_turn_end=until_turn_end))
        damaged = await _print(later, _json_line if as_json else _text)
    else:
        async with await storage.read(id_) as log:
            damaged = await _print_once(asked.noting(shown(log, selection)), as_json=as_json)
    for hint in asked.hints(host):
        click.echo(visible(hint), err=True)
    if damaged:
        word = as_word(id_)
        click.echo(f"{word} is damaged: `heald sessions verify {word}` says how", err=True)
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
    records = await host.scope.require(session_query).list_sessions(keys=KEYS)
    top = None if session is None else session_named(session, [record.id for record in records])
    nodes = lineage(records, top)
    if as_json:
        print_json([object_of_node(node) for node in nodes])
        return
    for node in nodes:
        click.echo(visible(line_of(node)))
    if not nodes:
        click.echo(_NOTHING)


def _whole(path: Path) -> str:
    """Return a directory's name as sessions have it."""
    return str(path.expanduser().resolve())


async def _parent_named(query: SessionQuery, given: str) -> SessionId:
    """Return the session that is meant, which may be gone while what came of it is here."""
    records = await query.list_sessions()
    ids = {record.id for record in records}
    named = {record.header.parent_session for record in records if record.header is not None}
    return session_named(given, ids | {id_ for id_ in named if id_ is not None})


async def _why_nothing(query: SessionQuery, where: SessionFilter, after: Position | None) -> str:
    if after is not None and await query.list_sessions(where, limit=1):
        return "No session comes after that one."
    hidden = len(await query.list_sessions(attrs.evolve(where, subagents=True)))
    if where.subagents is False and hidden:
        return f"No sessions but {hidden} of subagents; `--all` shows them."
    return _NOTHING if not await query.list_sessions(limit=1) else "No session fits."


def _there_are_more(found: Sequence[SessionRecord], order: str) -> str:
    if order == "activity":
        return "There are more; a higher --limit shows them."
    return f"There are more; add `--after {as_word(str(found[-1].position))}`."


async def _show_projections(
    host: Host,
    id: SessionId,  # noqa: A002
    keys: Sequence[str],
    at: int | None,
    *,
    as_json: bool,
) -> int:
    end, values = await values_at(host, id, keys, None if at is None else Seq(at))
    if as_json:
        print_json({"id": id, "as_of_seq": end - 1, "values": values})
        return 0
    for key, value in values.items():
        click.echo(f"{key}: {_pretty(value)}")
    return 0


def _pretty(value: object) -> str:
    return visible(json.dumps(value, indent=2, ensure_ascii=False))


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
