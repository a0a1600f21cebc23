"""The event that records a todo list."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from heald_session import EventType

LONGEST = 500
"""How many characters an item may have."""
MOST = 100
"""How many items a list may have."""


class TodoItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to do."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
    status: Literal["pending", "active", "done"]


class TodoWritten(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`todo/written`: the list as it is from here on, whole."""

    items: Annotated[list[TodoItem], msgspec.Meta(max_length=MOST)]


TODO_WRITTEN = EventType("todo/written", TodoWritten)
