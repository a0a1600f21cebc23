"""The tool `read_session`: some events of a session, as text of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import attrs
import msgspec
from msgspec import Meta

from heald_agent import Tool, ToolContext, ToolError
from heald_persistence import Damage
from heald_query import EventWindow, lines_of, lines_of_damage, session_named
from heald_session import Event
from heald_tools_sessions.sight import Sight

MOST_EVENTS = 100
MOST_CHARACTERS = 30_000
"""How much one call gives; what does not fit is for the next."""
LONGEST_EVENT = 4_000
"""Characters of one event among others; one that is asked for alone may fill the whole."""


class ReadArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `read_session` is called with."""

    session: Annotated[
        str, Meta(description="The session's id, or the beginning of it if only one fits.")
    ]
    around: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Show what stands around the event with this seq."),
    ] = None
    start: Annotated[
        int | None,
        Meta(
            description="The seq to begin at; negative counts from the end, so -20 shows the last "
            "20. Without `start` and `around` the session is shown from its beginning."
        ),
    ] = None
    limit: Annotated[
        int, Meta(ge=1, le=MOST_EVENTS, description=f"How many events, at most {MOST_EVENTS}.")
    ] = 20


async def _read(arguments: ReadArguments, context: ToolContext) -> str:
    if arguments.around is not None and arguments.start is not None:
        raise ToolError("`around` and `start` exclude each other; give one of them")
    sight = Sight.of(context)
    records = await sight.records()
    record = records[session_named(arguments.session, records)]
    start, limit = arguments.start or 0, arguments.limit
    if arguments.around is not None:
        start = max(0, arguments.around - limit // 2)
    elif start < 0:
        start = max(0, (await sight.window(record, 0, 0)).end + start)
    window = await sight.window(record, start, start + limit)
    wanted = start if arguments.around is None else arguments.around
    if wanted and wanted >= window.end:
        raise ToolError(f"session {record.id} has {window.end} events; there is none at {wanted}")
    return "\n".join(_told(window, alone=limit == 1))


def _told(window: EventWindow, *, alone: bool) -> Iterator[str]:
    page = _Page(MOST_CHARACTERS if alone else LONGEST_EVENT)
    for item in window.items:
        if not page.add(item):
            break
    yield f"session {window.header.id} in {window.header.cwd or 'no directory'}"
    yield from page.shown
    stop = window.stop if page.left is None else page.left
    if page.cut:
        seqs = ", ".join(map(str, page.cut))
        yield f"[cut, where `…` ends them: {seqs}; start=SEQ with limit=1 shows more of one]"
    if stop < window.end:
        yield f"[events {window.start} to {stop - 1} of {window.end}; go on with start={stop}]"
    else:
        yield f"[the end: {window.end} events]"


@attrs.define
class _Page:
    """What is shown of a window, and what of it does not fit."""

    longest: int
    shown: list[str] = attrs.field(factory=list)
    size: int = 0
    cut: list[int] = attrs.field(factory=list)
    left: int | None = None
    """The first event that did not fit."""

    def add(self, item: Event | Damage) -> bool:
        """Take an item in, unless there is no room."""
        place: int
        if isinstance(item, Damage):
            place, lines = item.first, lines_of_damage(item)
        else:
            place, lines = item.seq, lines_of(item)
        text = "\n".join(lines)
        is_cut = len(text) > self.longest
        text = text[: self.longest] + "…" * is_cut
        if self.shown and self.size + len(text) > MOST_CHARACTERS:
            self.left = place
            return False
        self.size += len(text) + 1
        self.shown.append(text)
        if is_cut:
            self.cut.append(place)
        return True


READ_SESSION = Tool(
    name="read_session",
    description=(
        "Read events of an earlier or running session of your working directory, or of one below "
        "it: what people, models and tools wrote, each with its seq and time. A long session comes "
        "in parts; the end of a part says how to go on. Find sessions with search_sessions."
    ),
    arguments=ReadArguments,
    run=_read,
    parallel=True,
)
