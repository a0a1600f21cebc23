"""What tests of folds need: events in a live log that no installed plugin would write."""

from __future__ import annotations

from typing import Any

import msgspec

from heald_session.contracts import Session
from heald_session.events import Event, Surface
from heald_session.hookspecs import event_appended
from heald_session.live import LiveSession
from heald_session.positions import Seq


def append_unchecked(
    session: Session,
    type: str,  # noqa: A002
    data: Any,
    *,
    surface: Surface | None = None,
    sources: tuple[Seq, ...] | None = None,
    v: int = 1,
    required: bool = False,
) -> Event:
    """Commit an event as a foreign writer would have, and tell observers.

    Neither its type nor its data is checked, and no guard is asked.
    """
    assert isinstance(session, LiveSession)
    text = msgspec.json.encode(data)
    event = Event(
        seq=Seq(session.end),
        type=type,
        time=max(session.scope.host.now(), session.hot()[-1].time if session.end else 0),
        encoded=msgspec.Raw(text),
        v=v,
        required=required,
        surface=surface,
        sources=sources,
    )
    session.commit(event, len(text))
    session.scope.notify(event_appended, session, event)
    return event
