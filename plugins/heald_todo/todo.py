"""The tool `todo`: writes the list, whole each time, so that what it says is what there is."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import msgspec

from heald_agent import Tool, ToolContext
from heald_todo.events import MOST, TODO_WRITTEN, TodoItem, TodoWritten

_MARKS: dict[str, str] = {"pending": "[ ]", "active": "[>]", "done": "[x]"}


class TodoArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the model gives."""

    items: Annotated[
        list[TodoItem],
        msgspec.Meta(max_length=MOST, description="The whole list; it replaces the one before."),
    ]


async def _write(arguments: TodoArguments, context: ToolContext) -> str:
    context.agent.session.append(TODO_WRITTEN.name, TodoWritten(arguments.items))
    if not arguments.items:
        return "The list is empty."
    counts: Counter[str] = Counter(item.status for item in arguments.items)
    head = ", ".join(f"{counts[status]} {status}" for status in _MARKS if counts[status])
    return "\n".join([head, *(f"{_MARKS[item.status]} {item.text}" for item in arguments.items)])


TODO = Tool(
    name="todo",
    description=(
        "Keep a list of what there is to do in a task of several steps. Write the whole list each "
        "time something changes: one item is active while you work on it, and done when it is."
    ),
    arguments=TodoArguments,
    run=_write,
    changes=False,  # the list is a note of the agent to itself
)
