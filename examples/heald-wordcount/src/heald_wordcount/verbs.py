"""The command-line verb `heald words`."""

from __future__ import annotations

import click

from heald import Host
from heald.verbs import host_verb, json_option, print_json, print_table
from heald_query import session_query
from heald_session import SessionId
from heald_wordcount.counts import WORD_COUNTS


@click.command
@click.argument("session")
@json_option
@host_verb
async def words(host: Host, session: str, as_json: bool) -> None:
    """Show the words that were counted in SESSION."""
    query = host.scope.require(session_query)
    async with query.observe_session(SessionId(session), [WORD_COUNTS]) as observation:
        totals: dict[str, int] = observation.projections.values[WORD_COUNTS]
    rows = sorted(totals.items())
    if as_json:
        print_json([{"path": path, "words": count} for path, count in rows])
    else:
        print_table(["path", "words"], rows)
