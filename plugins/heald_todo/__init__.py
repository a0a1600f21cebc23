"""The todo list that an agent keeps of its own work."""

from heald_todo.events import TodoItem, TodoWritten

__all__ = ["TodoItem", "TodoWritten"]
