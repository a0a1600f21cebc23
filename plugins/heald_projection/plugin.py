"""The projection row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heald import NoConfig, Plugin, RowContext, implements
from heald_projection.contracts import Projections
from heald_projection.hookspecs import projections
from heald_projection.registry import Registry
from heald_session import (
    Event,
    Session,
    WindowHolder,
    event_appended,
    session_loading,
    session_prepared,
    window_holders,
)


class ProjectionPlugin(Plugin[NoConfig]):
    """Folds every live session's events, and cold logs on request."""

    def __init__(self, context: RowContext[NoConfig]) -> None:
        super().__init__(context)
        self._registry = Registry(context.scope.host)

    @implements(projections)
    def provide_projections(self) -> Projections:
        return self._registry

    @implements(window_holders)
    def hold_what_is_not_folded(self) -> Iterable[WindowHolder]:
        return [self._registry.needed]

    @implements(session_loading)
    def fold_loaded(self, session: Session, events: Sequence[Event]) -> None:
        self._registry.load(session, events)

    @implements(session_prepared)
    def fill_cells(self, session: Session) -> None:
        self._registry.prepare(session)

    @implements(event_appended)
    def advance_cells(self, session: Session, event: Event) -> None:
        self._registry.appended(session, event)
