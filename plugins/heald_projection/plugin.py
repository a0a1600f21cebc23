"""The projection row."""

from __future__ import annotations

from heald import NoConfig, Plugin, RowContext, implements
from heald_projection.contracts import Projections
from heald_projection.hookspecs import projections
from heald_projection.registry import Registry
from heald_session import Event, Session, event_appended, session_prepared


class ProjectionPlugin(Plugin[NoConfig]):
    """Folds every live session's events, and cold logs on request."""

    def __init__(self, context: RowContext[NoConfig]) -> None:
        super().__init__(context)
        self._registry = Registry(context.scope.host)

    @implements(projections)
    def provide_projections(self) -> Projections:
        return self._registry

    @implements(session_prepared)
    def fill_cells(self, session: Session) -> None:
        self._registry.prepare(session)

    @implements(event_appended)
    def advance_cells(self, session: Session, event: Event) -> None:
        self._registry.appended(session, event)
