"""The tool `search_sessions`: where words were written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Annotated

import attrs
import msgspec
from msgspec import Meta

from heald import told_time
from heald_agent import Tool, ToolContext
from heald_query import Role, SearchHit
from heald_session import Seq, SessionId
from heald_tools_sessions.sight import Sight
from heald_tools_sessions.times import read_time

MOST_HITS = 50


class SearchArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `search_sessions` is called with."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            description="Words that the text must have, all of them, in any order; parts of "
            "identifiers and paths count as words. Words in double quotes must stand together.",
        ),
    ]
    role: Annotated[
        Role | None, Meta(description="Only what a user, an assistant or a tool wrote.")
    ] = None
    since: Annotated[
        str | None,
        Meta(description="Only what was written from then on: `2025-01-31`, `2025-01-31T09:30`."),
    ] = None
    inherited: Annotated[
        bool,
        Meta(
            description="Also find what a fork took over from the session it was made from; that "
            "session usually has it too."
        ),
    ] = False
    limit: Annotated[
        int, Meta(ge=1, le=MOST_HITS, description=f"How many hits, at most {MOST_HITS}.")
    ] = 10


async def _search(arguments: SearchArguments, context: ToolContext) -> str:
    sight = Sight.of(context)
    where = attrs.evolve(
        sight.search_filter(),
        roles=None if arguments.role is None else frozenset({arguments.role}),
        since=None if arguments.since is None else read_time(arguments.since),
        inherited=None if arguments.inherited else False,
    )
    # One more than is shown says whether there are more, and one may be the call itself.
    page = await sight.query.search(
        arguments.query, where, limit=arguments.limit + 2, cancel=context.cancel
    )
    asking = (sight.own, _asking(context))
    hits = [hit for hit in page.hits if (hit.session, hit.seq) != asking]
    # A session that cannot be read may be one that is not to be seen, whatever the filter says.
    unread = set(page.unread) & (await sight.records()).keys() if page.unread else set()
    return "\n".join(_told(hits, arguments.limit, sorted(unread), sight.own))


def _asking(context: ToolContext) -> Seq | None:
    """Return the seq of the message with this call, which has every word that is searched for."""
    events = reversed(context.agent.session.hot())
    return next((event.seq for event in events if event.type == "assistant/message"), None)


def _told(
    hits: Sequence[SearchHit], limit: int, unread: Sequence[SessionId], own: SessionId
) -> Iterator[str]:
    for hit in hits[:limit]:
        here = " (this session)" if hit.session == own else ""
        where = f"{hit.session}{here}, seq {hit.seq}, {told_time(hit.time, UTC)}"
        yield f"{where}, {hit.role}: {hit.snippet.text}"
    if not hits:
        yield "(nothing found)"
    else:
        yield "[read_session with session=ID and around=SEQ shows what stands around a hit]"
    if len(hits) > limit:
        yield "[there are more: add words, or raise limit]"
    if unread:
        yield f"[not searched, or not wholly, because they cannot be read: {', '.join(unread)}]"


SEARCH_SESSIONS = Tool(
    name="search_sessions",
    description=(
        "Search what people, assistants and tools wrote in the sessions of your working directory "
        "and of those below it, this one included. Gives for each hit the session's id, the seq of "
        "the event, when and by whom it was written, and the words around. Use it to find earlier "
        "work, decisions and errors before doing something again."
    ),
    arguments=SearchArguments,
    run=_search,
    parallel=True,
)
