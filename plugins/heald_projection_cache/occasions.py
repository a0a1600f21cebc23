"""When a live session is checkpointed: at the end of a turn, and now and then during a long one."""

from __future__ import annotations

from asyncio import TaskGroup
from weakref import WeakKeyDictionary

from heald_projection_cache.contracts import ProjectionCache
from heald_session import Event, Session

EVERY_MS = 10_000
"""How long a session that goes on without ending a turn is left alone after it was saved."""


class Occasions:
    """Starts saves of sessions as events come in; needs no clock but that of the events.

    A save that failed is made good at the next event that comes late enough, the turn's end, or
    when the session closes.
    """

    def __init__(self, cache: ProjectionCache, tasks: TaskGroup) -> None:
        self._cache = cache
        self._tasks = tasks
        self._tried: WeakKeyDictionary[Session, int] = WeakKeyDictionary()
        """When each session was last saved or tried to be, or first heard of."""

    def appended(self, session: Session, event: Event) -> None:
        """Hear of an event, and save its session if it is time."""
        if event.type != "turn/end":
            tried = self._tried.setdefault(session, event.time)
            if event.time - tried < EVERY_MS:
                return
        self._tried[session] = event.time
        self._tasks.create_task(self._cache.save(session), name=f"checkpoint of {session.id}")
