"""Sessions on their way into storage: one whole session at a time, whatever file it comes from."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import attrs
import msgspec

from heald_session import Event, Header, LogOffset


@attrs.frozen
class Arrival:
    """A session as a file holds it, checked and ready to be stored."""

    header: Header
    cut: LogOffset
    events: Sequence[Event]
    notes: tuple[str, ...] = ()
    """What of it could not be carried."""


class Unfit(Exception):
    """What a file holds is no session that can be stored; the message says why."""


def arrival(
    header: Header, cut: int, events: Sequence[Event], notes: tuple[str, ...] = ()
) -> Arrival:
    """Make the facts of a session that begins here: it is the same log in another life.

    Raises `Unfit` for a session without events, or with less than it says it inherited.
    """
    if not events:
        raise Unfit(f"session {header.id!r} has no events, so there is nothing to keep")
    if not 0 <= cut <= len(events):
        raise Unfit(f"session {header.id!r} has {len(events)} events, but inherited {cut}")
    header = msgspec.structs.replace(header, log_id=secrets.token_hex(16), is_seeded=cut > 0)
    return Arrival(header, LogOffset(cut), events, notes)
