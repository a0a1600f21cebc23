"""The verbs `heald sessions export` and `heald sessions import`."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import click

from heald import HealdError, Host, counted, visible
from heald.verbs import host_verb, json_option, print_json
from heald_persistence import session_persistence
from heald_query import find_session, session_query
from heald_session import SessionId, session_store
from heald_transfer.exporting import export_to, with_descendants
from heald_transfer.importing import Imported, files_in, import_file

_FILE = click.Path(dir_okay=False, path_type=Path)
_PLACE = click.Path(exists=True, path_type=Path)


@click.command("export")
@click.argument("session")
@click.option("-o", "--output", type=_FILE, required=True, metavar="FILE", help="Where to write.")
@click.option("--descendants", is_flag=True, help="Take every session that came of it, too.")
@click.option("--force", is_flag=True, help="Replace the file if there is one.")
@json_option
@host_verb
async def export_session(
    host: Host,
    session: str,
    *,
    output: Path,
    descendants: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write a session to one file.

    SESSION is an id, or the beginning of one as long as only one fits. The file holds everything
    that the session is made of, and `heald sessions import FILE` brings it back, here or on another
    machine. A session that is being written is taken as it is at that moment; a damaged one is not
    exported: salvage it first.
    """
    query = host.scope.require(session_query)
    id_ = await find_session(query, session)
    ids = await with_descendants(query, id_) if descendants else [id_]
    done = await export_to(output, query, ids, replace=force)
    if as_json:
        print_json([{"id": one.id, "events": one.events} for one in done])
        return
    for one in done:
        click.echo(f"exported {one.id} ({counted(one.events, 'event')})")


@click.command("import")
@click.argument("path", type=_PLACE)
@json_option
@host_verb
async def import_sessions(host: Host, path: Path, *, as_json: bool) -> int:
    """Bring sessions in from a file, or from every file under a directory.

    PATH is a file that `heald sessions export` made, a session log of the reference system, or a
    directory with such files (.heald.zst, .jsonl.zstd). Ids, parents and times stay as they are; a
    session whose id is taken is left out. Each session is imported whole or not at all; the exit
    code is 1 if any was not. What could not be carried is told on standard error.
    """
    storage = host.scope.require(session_persistence)
    done: list[Imported] = []
    for file in await asyncio.to_thread(files_in, path):
        async for one in import_file(storage, file):
            done.append(one)
            await _checkpoint(host, one)
            if not as_json:
                _tell(one)
    if as_json:
        print_json([_object(one) for one in done])
    return 1 if any(one.error is not None for one in done) else 0


async def _checkpoint(host: Host, one: Imported) -> None:
    """Have what lists show of a session made once, so that they need not read its log.

    A log that a resume would change is left as it came; so is one that cannot be resumed here.
    """
    store = host.scope.find(session_store)
    if one.id is None or not one.is_settled or store is None:
        return
    with contextlib.suppress(HealdError):
        await store.dispose(await store.resume(SessionId(one.id)))


def _tell(one: Imported) -> None:
    if one.error is not None:
        what = "" if one.id is None else f"{visible(one.id)} was not imported: "
        click.echo(f"{what}{one.error.code}: {visible(str(one.error))}", err=True)
        return
    click.echo(f"imported {visible(str(one.id))} ({counted(one.events, 'event')})")
    for note in one.notes:
        click.echo(f"  {visible(str(one.id))}: {visible(note)}", err=True)


def _object(one: Imported) -> dict[str, object]:
    error = one.error
    return {
        "id": one.id,
        "file": str(one.path),
        "imported": error is None,
        "events": one.events,
        "notes": list(one.notes),
        "problem": None if error is None else {"code": error.code, "message": str(error)},
    }
