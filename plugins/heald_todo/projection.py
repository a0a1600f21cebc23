"""The projection `todos`: the list an agent works by, or null before it wrote one."""

from __future__ import annotations

from typing import Any

import msgspec

from heald_projection import Unit
from heald_session import Event, Header, LogOffset
from heald_todo.events import TODO_WRITTEN, TodoItem, TodoWritten

Todos = list[dict[str, Any]] | None


def _initial(_header: Header, _cut: LogOffset) -> Todos:
    return None


def _apply(state: Todos, event: Event) -> Todos:
    try:
        items: Todos = msgspec.to_builtins(event.data_as(TodoWritten).items)
    except msgspec.ValidationError:  # written under another schema: the list before it stands
        return state
    return state if items == state else items


def _view(state: Todos) -> Todos:
    return state


TODOS = Unit(
    key="todos",
    state_version=1,
    event_types=frozenset({TODO_WRITTEN.name}),
    initial=_initial,
    apply=_apply,
    view=_view,
    state_schema=list[TodoItem] | None,
    view_schema=list[TodoItem] | None,
)
