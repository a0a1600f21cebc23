"""The verbs `heald sessions fork` and `heald sessions rename`."""

from __future__ import annotations

import click

from heald import Host
from heald.verbs import host_verb, json_option, print_json
from heald_query import find_session, session_query
from heald_session.hookspecs import session_store
from heald_session.naming import SessionRenamed
from heald_session.positions import LogOffset


@click.command("fork")
@click.argument("session")
@click.option(
    "--at",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep the first N events, which are 0 to N - 1; all of them if not given.",
)
@json_option
@host_verb
async def fork_session(host: Host, session: str, *, at: int | None, as_json: bool) -> None:
    """Make a session that starts with the events of another, and print its id.

    SESSION is an id, or the beginning of one as long as only one fits. It may be running. It cannot
    be cut inside a turn; the error names the nearest places where it can.
    """
    store = host.scope.require(session_store)
    source = await find_session(host.scope.require(session_query), session)
    cut = None if at is None else LogOffset(at)
    header = await store.fork_stored(source, cut=cut)
    if as_json:
        print_json({"id": header.id, "parent_session": header.parent_session})
    else:
        click.echo(header.id)


@click.command("rename")
@click.argument("session")
@click.argument("title")
@host_verb
async def rename_session(host: Host, session: str, title: str) -> None:
    """Give a session a title of your own.

    SESSION is an id, or the beginning of one as long as only one fits. The title is shown instead
    of the first line of the first prompt. A session that somebody else is writing is busy.
    """
    if not title.strip():
        raise click.BadParameter("a title has at least one visible character", param_hint="TITLE")
    id_ = await find_session(host.scope.require(session_query), session)
    live = await host.scope.require(session_store).resume(id_)
    live.append("session/renamed", SessionRenamed(title))
    await live.flush()
