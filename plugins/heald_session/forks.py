"""Where a log may be cut for a fork, and what the fork's header is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from heald_session.errors import CutInvalid
from heald_session.events import Event
from heald_session.header import FORMAT_VERSION, Header
from heald_session.positions import LogOffset, SessionId, after, before


def checked_cut(
    id: SessionId,  # noqa: A002
    events: Sequence[Event],
    cut: LogOffset | None,
) -> LogOffset:
    """Return where to cut, the end if nothing was said; raise `CutInvalid`, never clip."""
    end = LogOffset(len(events))
    cut = end if cut is None else cut
    if not 0 <= cut <= end:
        raise CutInvalid(id, cut, f"the log has {end} events")
    opened: LogOffset | None = None
    for event in events[:cut]:
        if event.type == "turn/start" and opened is None:
            opened = before(event.seq)
        elif event.type == "turn/end":
            opened = None
    if opened is not None:
        raise CutInvalid(id, cut, _inside(events, cut, opened))
    return cut


def _inside(events: Sequence[Event], cut: LogOffset, opened: LogOffset) -> str:
    ends = (after(event.seq) for event in events[cut:] if event.type == "turn/end")
    closed = next(ends, None)
    places = f"cut at {opened}" + (f" or {closed}" if closed is not None else "")
    return f"a turn is open there; {places}"


def forked_header(
    source: Header,
    id: SessionId,  # noqa: A002
    log_id: str,
    now: int,
    *,
    seeded: bool,
    change: Callable[[Header], Header] | None,
) -> Header:
    """Make the header of a fork: whose it is stays, what it is for does not.

    The preset stays too: with the inherited events it gives the one the source ran at the cut.
    `change` has no say in the facts that identify the log.
    """
    header = msgspec.structs.replace(source, parent_session=source.id, origin=None)
    header = change(header) if change is not None else header
    return msgspec.structs.replace(
        header, version=FORMAT_VERSION, id=id, log_id=log_id, created_at=now, is_seeded=seeded
    )
