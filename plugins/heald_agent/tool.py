"""What a tool is, and what its body is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

from heald import CancelToken
from heald_session import ToolCall

if TYPE_CHECKING:
    from heald_agent.contracts import Agent

A = TypeVar("A")


@attrs.frozen(kw_only=True)
class ToolContext:
    """Where a tool's body runs."""

    agent: Agent
    call_id: str
    cwd: Path
    """The session's working directory."""
    cancel: CancelToken


@attrs.frozen(kw_only=True)
class Tool(Generic[A]):
    """Something the model may call; contributed through `heald_agent.tools`.

    `arguments` is a msgspec struct: the model sees its JSON Schema, and what the model writes is
    converted to it before the body runs. The body returns the text the model reads, or raises
    `ToolError` with a reason it can act on.
    """

    name: str
    description: str
    arguments: type[A]
    run: Callable[[A, ToolContext], Awaitable[str]]
    parallel: bool = False
    """Whether it may run beside other such calls of the same step."""
    changes: bool = True
    """Whether it may change anything beyond what the agent says and notes for itself.

    A tool that only reads says so, and may be used where nothing is to be changed."""
    timeout: float | None = None
    """Seconds the body may take; None is the row's `tool_timeout_s`, `math.inf` is no limit."""


@attrs.frozen
class ToolRequest:
    """One call on its way to a tool's body, as middleware sees it."""

    call: ToolCall
    context: ToolContext
    changes: bool = True
    """Whether the tool may change anything, as it says itself."""


@attrs.frozen
class ToolReply:
    """What the model will read for a call."""

    text: str
    is_error: bool = False


ToolGuard = Callable[[ToolRequest], str | None]
"""Looks at a call before it runs; a text refuses the call and is the reason the model reads."""


@attrs.frozen
class PromptSection:
    """A part of the system prompt; sections follow each other in row order."""

    name: str
    render: Callable[[Agent], Awaitable[str]]
    """Make the text when a turn has opened; an empty text leaves the section out.

    Sections are rendered one after another, and what one logs comes before the `turn/context` that
    has its text. One that raises fails the turn, and one that waits is cancelled with it."""


AnyTool = Tool[Any]
