"""Scripts: what the scripted model plays instead of asking a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs

from heald_agent import ModelRequest
from heald_session import AssistantMessage, Message, ToolResult, UserMessage


@attrs.frozen(kw_only=True)
class Call:
    """A tool call that a reply makes."""

    tool: str
    arguments: dict[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Reply:
    """What the model answers to one request."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    delay: float = 0.0
    """Seconds to wait before the first piece of text."""
    failure: str | None = None
    """Fail the request with this kind of `ModelFailed` instead of answering; the text, if there is
    one, has arrived by then."""


@attrs.frozen
class Conversation:
    """A request as a script looks at it: what was said, and what tools returned."""

    request: ModelRequest

    @property
    def messages(self) -> tuple[Message, ...]:
        """Everything the model sees."""
        return self.request.messages

    @property
    def prompt(self) -> str:
        """The text of the latest user message."""
        texts = [m.text for m in self.messages if isinstance(m, UserMessage)]
        return texts[-1] if texts else ""

    @property
    def since_prompt(self) -> tuple[Message, ...]:
        """What came after the latest user message."""
        last = max(
            (n for n, m in enumerate(self.messages) if isinstance(m, UserMessage)), default=-1
        )
        return self.messages[last + 1 :]

    @property
    def step(self) -> int:
        """How many answers the model gave since the latest user message."""
        return sum(isinstance(m, AssistantMessage) for m in self.since_prompt)

    def results(self, tool: str | None = None) -> tuple[ToolResult, ...]:
        """Return what tools returned since the latest user message, of one tool or of all."""
        return tuple(
            m
            for m in self.since_prompt
            if isinstance(m, ToolResult) and (tool is None or m.name == tool)
        )

    def has_tool(self, name: str) -> bool:
        """Say whether the agent has a tool."""
        return any(tool.name == name for tool in self.request.tools)


@attrs.frozen
class Script:
    """A named script: `scripted:NAME` is the model that plays it.

    `play` looks at the conversation and nothing else, so that a resumed session goes on where it
    stopped; it may be a plain or an async function.
    """

    name: str
    play: Callable[[Conversation], Reply | Awaitable[Reply]]


def steps(name: str, replies: Sequence[Reply]) -> Script:
    """Make a script that gives these replies to each prompt in turn, the last one ever after."""

    def play(conversation: Conversation) -> Reply:
        return replies[min(conversation.step, len(replies) - 1)]

    return Script(name, play)
