"""The plugin that lets an agent keep a todo list."""

from __future__ import annotations

from collections.abc import Iterable

from heald import NoConfig, Plugin, implements
from heald_agent import AnyTool, tools
from heald_projection import Unit, units
from heald_session import EventType, event_types
from heald_todo.events import TODO_WRITTEN
from heald_todo.projection import TODOS
from heald_todo.todo import TODO


class TodoPlugin(Plugin[NoConfig]):
    """Contributes `todo`; what the list is, the projection `todos` says."""

    @implements(tools)
    def tool(self) -> Iterable[AnyTool]:
        return (TODO,)

    @classmethod
    @implements(event_types)
    def declare_events(cls) -> Iterable[EventType]:
        return (TODO_WRITTEN,)

    @classmethod
    @implements(units)
    def declare_units(cls) -> Iterable[Unit]:
        return (TODOS,)
