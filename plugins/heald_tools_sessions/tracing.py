"""The tool `session_lineage`: what a session came of, and what came of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC
from itertools import islice, takewhile
from typing import Annotated

import msgspec
from msgspec import Meta

from heald import shortened, told_time
from heald_agent import Tool, ToolContext
from heald_query import SessionRecord, session_named
from heald_session import SessionId
from heald_tools_sessions.sight import Sight

MOST_SHOWN = 100
"""How many sessions are shown above, and how many below."""
LONGEST_TITLE = 100
_KEYS = ("title", "subagent")


class LineageArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `session_lineage` is called with."""

    session: Annotated[
        str | None,
        Meta(description="A session's id, or the beginning of it; leave out for your own."),
    ] = None


async def _trace(arguments: LineageArguments, context: ToolContext) -> str:
    sight = Sight.of(context)
    seen = await sight.records(_KEYS)
    top = sight.own if arguments.session is None else session_named(arguments.session, seen)
    relatives = await sight.relatives(top)
    above = list(takewhile(seen.__contains__, (record.id for record in relatives.ancestors)))
    down = {top: seen[top]}
    for record in relatives.descendants:
        # Parents come before their children, so this goes down through what may be seen.
        if record.id in seen and _parent(record) in down:
            down[record.id] = seen[record.id]
    return "\n".join(_told([seen[id_] for id_ in above], *down.values()))


def _told(
    above: Sequence[SessionRecord], top: SessionRecord, *below: SessionRecord
) -> Iterator[str]:
    shown = {record.id for record in (*above, top, *below)}
    yield _line(top, shown)
    for title, records in (("ancestors, the nearest first", above), ("descendants", below)):
        yield f"{title}:" if records else f"{title}: none"
        yield from (f"- {_line(record, shown)}" for record in islice(records, MOST_SHOWN))
        if (more := len(records) - MOST_SHOWN) > 0:
            yield f"[and {more} more; ask for the lineage of the last one]"


def _line(record: SessionRecord, shown: Collection[SessionId]) -> str:
    header = record.header
    values = record.projections.values if record.projections is not None else {}
    parts: list[str] = [record.id]
    if header is not None and (parent := _parent(record)) in shown:
        kind = "fork" if header.is_seeded else "child"
        parts.append(f"{header.origin or kind} of {parent}")
    if label := (values.get("subagent") or {}).get("label"):
        parts.append(repr(_short(label)))
    if header is not None:
        parts.append(told_time(header.created_at, UTC))
    if title := (values.get("title") or {}).get("text"):
        parts.append(_short(title))
    return ", ".join(parts)


def _parent(record: SessionRecord) -> SessionId | None:
    return None if record.header is None else record.header.parent_session


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), LONGEST_TITLE)


SESSION_LINEAGE = Tool(
    name="session_lineage",
    description=(
        "Show what a session came of and what came of it: forks, and sessions of subagents that "
        "were given a task, each with its title. Only sessions of your working directory and of "
        "those below it are shown."
    ),
    arguments=LineageArguments,
    run=_trace,
    parallel=True,
)
