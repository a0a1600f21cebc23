"""Where a log may be cut for a fork, and what the fork's header is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import attrs
import msgspec

from heald_persistence import StoredLog
from heald_session.errors import CutInvalid
from heald_session.events import Event
from heald_session.header import FORMAT_VERSION, Header
from heald_session.origins import Origin
from heald_session.positions import LogOffset, SessionId, after, before

TURNS: Final = frozenset(("turn/start", "turn/end"))
_LATE: Final = 1000
"""How many events before a cut nearly always have one of a turn's among them."""


@attrs.define
class CutCheck:
    """Follows a log up to a cut, to know whether a turn is open there."""

    _opened: LogOffset | None = None

    def follow(self, events: Iterable[Event]) -> None:
        """Follow the log through its next events."""
        for event in events:
            if event.type == "turn/start" and self._opened is None:
                self._opened = before(event.seq)
            elif event.type == "turn/end":
                self._opened = None

    async def refuse_inside_a_turn(self, origin: Origin, cut: LogOffset) -> None:
        """Raise `CutInvalid`, with the nearest places that are legal, if a turn is open."""
        if self._opened is not None:
            closed = await _next_end(origin, cut)
            places = f"cut at {self._opened}" + (f" or {closed}" if closed is not None else "")
            raise CutInvalid(origin.header.id, cut, f"a turn is open there; {places}")


async def refuse_inside_a_turn(log: StoredLog, cut: LogOffset) -> None:
    """Raise `CutInvalid` if a turn is open at a cut, having read as little as tells."""
    if await _last_of_a_turn(log, cut) == "turn/start":
        check = CutCheck()
        async for batch in log.batches(stop=cut, types=TURNS):
            check.follow(batch)
        await check.refuse_inside_a_turn(log, cut)


async def _last_of_a_turn(log: StoredLog, cut: LogOffset) -> str | None:
    """Return the type of the last event before a cut that opens or closes a turn."""
    for start in (LogOffset(max(cut - _LATE, 0)), LogOffset(0)):
        last = None
        async for batch in log.batches(start, cut, types=TURNS):
            last = batch[-1].type if batch else last
        if last is not None:
            return last
    return None


def checked_cut(origin: Origin, cut: LogOffset | None) -> LogOffset:
    """Return where to cut, the end if nothing was said; raise `CutInvalid`, never clip."""
    if cut is None:
        return origin.end
    if not 0 <= cut <= origin.end:
        raise CutInvalid(origin.header.id, cut, f"the log has {origin.end} events")
    return cut


async def _next_end(origin: Origin, cut: LogOffset) -> LogOffset | None:
    """Return where the first turn ends after a cut."""
    async for batch in origin.batches(cut):
        for event in batch:
            if event.type == "turn/end":
                return after(event.seq)
    return None


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
