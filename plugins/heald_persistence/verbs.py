"""The verbs `heald sessions delete`, `restore`, `verify` and `salvage`."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import click

from heald import HealdError, Host, as_word, counted, visible
from heald.verbs import host_verb, json_option, print_json, print_table
from heald_persistence.contracts import Damage, SessionPersistence, StoredSession
from heald_persistence.hookspecs import session_persistence
from heald_query import session_named
from heald_session import SessionId


@attrs.frozen
class Checked:
    """What `verify` found of one session."""

    id: str
    damage: Sequence[Damage] = ()
    problem: str | None = None
    """Why it could not be read at all."""


@click.command("delete")
@click.argument("session")
@host_verb
async def delete_session(host: Host, session: str) -> None:
    """Move a session to the trash.

    SESSION is an id, or the beginning of one as long as only one fits. `heald sessions restore`
    brings it back. What was forked from it, or delegated by it, stays. A session that is being
    written is not deleted.
    """
    storage = host.scope.require(session_persistence)
    id_ = session_named(session, [item.name for item in await storage.list()])
    await storage.delete(id_)
    back = f"`heald sessions restore {as_word(id_)}` brings it back"
    click.echo(f"{visible(id_)} is in the trash; {back}")


@click.command("restore")
@click.argument("session", required=False)
@json_option
@host_verb
async def restore_session(host: Host, session: str | None, *, as_json: bool) -> None:
    """Bring a deleted session back, or list what could be.

    SESSION is an id, or the beginning of one as long as only one fits. Of sessions that had the
    same id the one that was deleted last comes back. Without SESSION the trash is listed, latest
    first.
    """
    storage = host.scope.require(session_persistence)
    trashed = await storage.trashed()
    if session is None:
        _print_trash(trashed, as_json=as_json)
        return
    id_ = session_named(session, {item.name for item in trashed})
    await storage.restore(id_)
    if as_json:
        print_json({"id": id_})
    else:
        click.echo(f"{visible(id_)} is back")


@click.command("verify")
@click.argument("sessions", nargs=-1)
@json_option
@host_verb
async def verify_sessions(host: Host, sessions: tuple[str, ...], *, as_json: bool) -> int:
    """Read all of every session, or of SESSIONS, and say what is wrong; change nothing.

    SESSIONS are ids, or beginnings of ids as long as only one fits each. Every damage is told with
    its kind, file, byte offset and the first event it takes. The exit code is 1 if there is any.
    """
    storage = host.scope.require(session_persistence)
    stored = {item.name: item for item in await storage.list()}
    named = [stored[session_named(given, stored)] for given in sessions]
    found = []
    for item in dict.fromkeys(named) if sessions else stored.values():
        found.append(await _check(storage, item))
        if not as_json:
            _print_check(found[-1])
    if as_json:
        print_json([_check_object(one) for one in found])
    faulty = sum(bool(one.damage or one.problem) for one in found)
    if not as_json:
        click.echo(f"{counted(len(found), 'session')} checked, {faulty} with faults")
    return 1 if faulty else 0


@click.command("salvage")
@click.argument("session")
@json_option
@host_verb
async def salvage_session(host: Host, session: str, *, as_json: bool) -> None:
    """Make a damaged session writable again from what can be read of it.

    SESSION is an id, or the beginning of one as long as only one fits. Nothing is thrown away: the
    files that are replaced are kept in the session's directory, under quarantine. A session that is
    not damaged is left as it is.
    """
    storage = host.scope.require(session_persistence)
    id_ = session_named(session, [item.name for item in await storage.list()])
    damage = await storage.salvage(id_)
    if as_json:
        print_json({"id": id_, "damage": [_damage_object(one) for one in damage]})
        return
    if not damage:
        click.echo(f"{visible(id_)} is not damaged; nothing was changed")
        return
    for one in damage:
        click.echo(visible(f"{id_}: {_told(one)}"))
    click.echo(
        f"{visible(id_)} can be written again; {_lost(damage)}. What was replaced is kept in its "
        "directory under quarantine/"
    )


async def _check(storage: SessionPersistence, item: StoredSession) -> Checked:
    """Check one session; one that cannot be read says why, and the others go on."""
    if item.problem is not None:
        return Checked(item.name, problem=item.problem)
    try:
        return Checked(item.name, await storage.verify(SessionId(item.name)))
    except HealdError as error:
        return Checked(item.name, problem=f"{error.code}: {error}")


def _print_check(one: Checked) -> None:
    if one.problem is not None:
        click.echo(visible(f"{one.id}: {one.problem}"))
    for damage in one.damage:
        click.echo(visible(f"{one.id}: {_told(damage)}"))


def _told(damage: Damage) -> str:
    where = f"{damage.file} at byte {damage.offset}"
    if damage.count == 0:
        lost = f"no event lost, at event {damage.first}"
    elif damage.count is None:
        lost = f"events lost from {damage.first} on"
    else:
        lost = f"{counted(damage.count, 'event')} lost from {damage.first} on"
    return f"{damage.kind}: {where}, {lost}: {damage.reason}"


def _lost(damage: Sequence[Damage]) -> str:
    counts = [one.count for one in damage]
    known = counted(sum(count for count in counts if count is not None), "event")
    return f"{known} lost" if None not in counts else f"at least {known} lost"


def _print_trash(trashed: Sequence[StoredSession], *, as_json: bool) -> None:
    if as_json:
        print_json([_trash_object(item) for item in trashed])
    elif not trashed:
        click.echo("The trash is empty.")
    else:
        rows = [(visible(item.name), _cwd(item), item.problem) for item in trashed]
        print_table(("id", "cwd", "problem"), rows)


def _cwd(item: StoredSession) -> str | None:
    return None if item.header is None or item.header.cwd is None else visible(item.header.cwd)


def _trash_object(item: StoredSession) -> dict[str, object]:
    header = item.header
    return {
        "id": item.name,
        "created_at": None if header is None else header.created_at,
        "cwd": None if header is None else header.cwd,
        "problem": item.problem,
    }


def _check_object(one: Checked) -> dict[str, object]:
    damage = [_damage_object(found) for found in one.damage]
    return {"id": one.id, "damage": damage, "problem": one.problem}


def _damage_object(damage: Damage) -> dict[str, object]:
    types = None if damage.types is None else sorted(damage.types)
    return {**attrs.asdict(damage), "types": types}
