"""The verb `heald search`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, Self

import attrs
import click

from heald import Host, shortened, told_time, visible
from heald.verbs import host_verb, json_option, print_json
from heald_query.contracts import SessionRecord
from heald_query.hookspecs import session_query
from heald_query.moments import Moment, since_option
from heald_query.naming import find_session
from heald_query.search.contracts import Role, SearchFilter, SearchHit, SearchPage, Snippet
from heald_query.search.typed_text import Typed
from heald_session import SessionId

_ROLES: tuple[Role, ...] = ("user", "assistant", "tool")
_PATIENCE = 1.0
"""Seconds before a first indexing says that it is why nothing is shown yet."""
_TITLE_LENGTH = 40


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--session", metavar="ID", help="Only in this session, inherited events too.")
@since_option
@click.option(
    "--type", "roles", multiple=True, type=click.Choice(_ROLES), help="Only what these wrote."
)
@click.option("--children", is_flag=True, help="In the sessions of subagents too.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N")
@json_option
@host_verb
async def search(
    host: Host,
    *,
    words: tuple[str, ...],
    session: str | None,
    since: Moment | None,
    roles: tuple[Role, ...],
    children: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Find what people, models and tools wrote, in every session.

    A text is found if it has all the WORDS, in any order and whatever their case; words in double
    quotes, which a shell must be kept from taking, stand together. Identifiers and paths are found
    by their parts too. What a fork inherited is shown where it was written. Each hit says how to
    open the session at that place.
    """
    query = host.scope.require(session_query)
    one = None if session is None else await find_session(query, session)
    where = SearchFilter(
        sessions=None if one is None else frozenset({one}),
        roles=frozenset(roles) or None,
        since=None if since is None else since(host.now()),
        subagents=None if children or one is not None else False,
        inherited=False if one is None else None,
    )
    typed = " ".join(words)
    with _Progress() as progress:
        page = await query.search(typed, where, limit=limit, on_progress=progress)
    if as_json:
        print_json(_page(page))
    elif page.hits:
        records = await query.list_sessions(keys=["title"])
        _print_page(page, {record.id: record for record in records})
    else:
        click.echo(_nothing(typed, where, one))
    _tell_unread(page)


def _print_page(page: SearchPage, records: Mapping[SessionId, SessionRecord]) -> None:
    for hit in page.hits:
        head = f"{_title(hit.session, records)}  {told_time(hit.time)}  {hit.role}"
        click.echo(click.style(head, bold=True))
        click.echo(f"    {_highlighted(hit.snippet)}")
        click.echo(click.style(f"    {_opening(hit)}", dim=True))
    if page.total > len(page.hits):
        click.echo(f"{len(page.hits)} of {page.total}; `--limit` shows more of them.")


def _title(id_: SessionId, records: Mapping[SessionId, SessionRecord]) -> str:
    record = records.get(id_)
    values = record.projections.values if record is not None and record.projections else {}
    title = (values.get("title") or {}).get("text")
    if not title:
        return visible(id_)
    return visible(shortened(title, _TITLE_LENGTH))


def _opening(hit: SearchHit) -> str:
    return f"heald sessions show {hit.session} --from {hit.seq}"


def _highlighted(snippet: Snippet) -> str:
    """Show what was found; echo takes the colours off where they would not be seen."""
    shown, at = "", 0
    for begin, end in snippet.marks:
        found = click.style(visible(snippet.text[begin:end]), fg="yellow", bold=True)
        shown += visible(snippet.text[at:begin]) + found
        at = end
    return shown + visible(snippet.text[at:])


def _nothing(typed: str, where: SearchFilter, one: SessionId | None) -> str:
    if Typed.parse(typed).expression is None:
        return f"There is no word in {visible(typed)!r} to search for."
    places = f"session {one}" if one is not None else "all sessions"
    if where.subagents is False:
        places = "all sessions but those of subagents"
    by = f", written by {' or '.join(sorted(where.roles))}" if where.roles is not None else ""
    since = f", since {told_time(where.since)}" if where.since is not None else ""
    told = f"Nothing found for {visible(typed)} in {places}{by}{since}."
    return " ".join([told, *_loosened(typed, where)])


def _loosened(typed: str, where: SearchFilter) -> list[str]:
    """Say which conditions were set that could be left out."""
    given = {
        "--session": where.sessions is not None,
        "--type": where.roles is not None,
        "--since": where.since is not None,
    }
    options = [name for name, is_set in given.items() if is_set]
    advice = []
    if options:
        advice.append(f"Leave out {' or '.join(options)} to search more.")
    if where.subagents is False:
        advice.append("`--children` searches those too.")
    if len(typed.split()) > 1:
        advice.append("Every word must be in one text; try fewer.")
    return advice


def _tell_unread(page: SearchPage) -> None:
    if page.unread:
        ids = ", ".join(map(visible, page.unread))
        told = f"Not or not wholly searched: {ids}; `heald sessions verify` says what is damaged."
        click.echo(told, err=True)


def _page(page: SearchPage) -> dict[str, Any]:
    hits = [_object(hit) for hit in page.hits]
    return {"hits": hits, "total": page.total, "unread": list(page.unread)}


def _object(hit: SearchHit) -> dict[str, Any]:
    return {
        "session": hit.session,
        "seq": hit.seq,
        "time": hit.time,
        "role": hit.role,
        "snippet": {"text": hit.snippet.text, "marks": [list(mark) for mark in hit.snippet.marks]},
    }


@attrs.define
class _Progress:
    """Says on a terminal how far a long indexing is, and takes that away when it is done."""

    _began: float = attrs.field(factory=time.monotonic)
    _shown: bool = False

    def __call__(self, done: int, total: int) -> None:
        if sys.stderr.isatty() and time.monotonic() - self._began > _PATIENCE:
            self._shown = True
            click.echo(f"\rindexing sessions: {done} of {total}\x1b[K", err=True, nl=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            click.echo("\r\x1b[K", err=True, nl=False)
