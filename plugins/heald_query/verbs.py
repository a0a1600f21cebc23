"""The verbs `heald sessions list` and `heald sessions show`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from heald import Host
from heald.verbs import host_verb, json_option, print_json, print_table
from heald_query.contracts import SessionQuery, SessionRecord
from heald_query.errors import SessionIdAmbiguous
from heald_query.hookspecs import session_query
from heald_query.transcript import lines_of, local_time, visible
from heald_session import SessionId

_KEYS = ("agentPreset", "title", "sessionStats")


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
@json_option
@host_verb
async def show_session(host: Host, session: str, *, types: tuple[str, ...], as_json: bool) -> None:
    """Show a session's log.

    SESSION is an id, or the beginning of one as long as only one fits.
    """
    query = host.scope.require(session_query)
    wanted = {name for option in types for name in option.split(",") if name}
    found: list[Any] = []
    async with query.observe_session(await _resolved(query, session)) as observation:
        async for event in observation.events():
            if wanted and event.type not in wanted:
                continue
            if as_json:
                found.append(msgspec.json.decode(msgspec.json.encode(event)))
            else:
                click.echo("\n".join(lines_of(event)))
    if as_json:
        print_json(found)


async def _resolved(query: SessionQuery, given: str) -> SessionId:
    """Return the id that is meant; one that fits nothing is left for the read to refuse."""
    ids = [record.id for record in await query.list_sessions()]
    fits = [id_ for id_ in ids if given and id_.startswith(given)]
    if given in ids or not fits:
        return SessionId(given)
    if len(fits) > 1:
        raise SessionIdAmbiguous(given, tuple(fits))
    return fits[0]


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
        click.echo('No sessions yet; `heald run "TASK"` makes one.')


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
