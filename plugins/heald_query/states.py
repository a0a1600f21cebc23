"""Projections of one session just after one of its events, for who asks on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heald import Host
from heald_projection import units
from heald_query.contracts import Observation
from heald_query.errors import OffsetBeyondEnd, ProjectionUnknown, SeqBeyondEnd
from heald_query.hookspecs import session_query
from heald_session import LogOffset, Seq, SessionId, after


async def values_at(
    host: Host,
    id: SessionId,  # noqa: A002
    keys: Sequence[str],
    seq: Seq | None,
) -> tuple[LogOffset, Mapping[str, Any]]:
    """Fold a session up to an event, or to its end, and return how far that was and the values.

    A value is the view; of a projection that has none, the state. Raises `ProjectionUnknown`,
    `SeqBeyondEnd` and what observing raises.
    """
    known = host.vocabulary(units)
    for key in keys:
        if known.get(key) is None:
            raise ProjectionUnknown(key, tuple(sorted(unit.key for unit in known)))
    query = host.scope.require(session_query)
    at = None if seq is None else after(seq)
    try:
        async with query.observe_session(id, keys, at=at) as observed:
            return observed.end, {key: _value(observed, key) for key in keys}
    except OffsetBeyondEnd as error:
        raise SeqBeyondEnd(id, Seq(error.at - 1), error.end) from None


def _value(observed: Observation, key: str) -> Any:
    values = observed.projections.values
    return values[key] if key in values else observed.state(key)
