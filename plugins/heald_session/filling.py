"""Fills a session with the events its log begins with: a fork's inheritance, or what is stored."""

from __future__ import annotations

from collections.abc import Sequence

from heald_persistence import StoredLog
from heald_session.events import NewEvent
from heald_session.forks import CutCheck
from heald_session.live import LiveSession
from heald_session.needs import Needs
from heald_session.origins import LiveOrigin, Origin
from heald_session.repair import Repair
from heald_session.vocabulary import EventTypes


async def inherit(session: LiveSession, origin: Origin, types: EventTypes) -> None:
    """Fill a fork with what its origin has before the cut.

    Raises `CutInvalid` if that is no place to cut, or `LogNeedsPlugin`.
    """
    check, needs = CutCheck(), Needs(types)
    copied = not isinstance(origin, LiveOrigin)
    async for batch in origin.batches(stop=session.cut):
        if copied:
            session.load(batch)
        else:
            session.inherit(batch)
        check.follow(batch)
        needs.follow(batch)
    await check.refuse_inside_a_turn(origin, session.cut)
    needs.refuse_unmet(origin.header.id)


async def load(session: LiveSession, log: StoredLog, types: EventTypes) -> Sequence[NewEvent]:
    """Fill a session with its stored log and return what repairs it; raises `LogNeedsPlugin`."""
    repair, needs = Repair(), Needs(types)
    async for batch in log.batches():
        session.load(batch)
        repair.follow(batch)
        needs.follow(batch)
    needs.refuse_unmet(session.id)
    return repair.closing()
