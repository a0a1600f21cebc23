"""The hooks that sessions own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from heald import collect, declare, observe, provide
from heald_session.contracts import AppendGuard, Session, SessionStore, WindowHolder
from heald_session.events import Event, EventType


@provide
def session_store() -> SessionStore:
    """Keep the live sessions of this process."""
    ...


@declare(key=attrgetter("name"), version=attrgetter("version"))
def event_types() -> Iterable[EventType]:
    """Declare the kinds of event a plugin writes; read from every installed plugin class."""
    ...


@collect
def append_guards() -> Iterable[AppendGuard]:
    """Contribute guards, each of which may refuse an event before it is committed.

    Those of the session's scope are asked in row order; the first to raise refuses and is named.
    Events that a log already has are not asked about: a stored, a forked, an imported log loads.
    """
    ...


@collect
def window_holders() -> Iterable[WindowHolder]:
    """Contribute callables that say from where on they still need a session's events in memory.

    Whoever follows sessions by `Session.hot` contributes one.
    """
    ...


@observe
def session_loading(session: Session, events: Sequence[Event]) -> None:
    """Hear of the next events of a log that is being loaded, from its beginning on, in order.

    A log is longer than memory: the batches are all there is of it until the session is opened.
    What is appended before that, such as a repair, is in `Session.hot`. Loading may yet fail.
    """


@observe
def session_prepared(session: Session) -> None:
    """Hear of a session whose log is loaded and that nobody else can see yet."""


@observe
def session_opened(session: Session) -> None:
    """Hear of a session that was just published."""


@observe
def event_appended(session: Session, event: Event) -> None:
    """Hear of an event after it was committed; appending to the same session here is refused."""


@observe
async def session_closed(session: Session) -> None:
    """Hear of a session that was flushed and is about to leave the store."""
