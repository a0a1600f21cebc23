"""What a model adapter is given and gives back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

import attrs

from heald import CancelToken
from heald_session import Message, ToolCall, ToolSchema, Usage


@attrs.frozen(kw_only=True)
class ModelRequest:
    """One request: a fold of the session's log, so it can be made again from the log alone."""

    adapter: str
    model: str
    """The adapter's own name of the model."""
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...]


@attrs.frozen
class TextDelta:
    """A piece of the answer's text as it arrives; shown live, never logged by itself."""

    text: str


@attrs.frozen(kw_only=True)
class ModelReply:
    """The settled answer to a request."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish: str = "stop"
    usage: Usage | None = None


class ModelAdapter(Protocol):
    """Speaks to one kind of model server; contributed through `heald_agent.models`."""

    @property
    def name(self) -> str:
        """The word before the colon in `adapter:model`."""
        ...

    def stream(
        self, request: ModelRequest, *, cancel: CancelToken
    ) -> AsyncIterator[TextDelta | ModelReply]:
        """Yield text as it arrives and end with the reply that has all of it.

        Raises `ModelFailed`. Nothing of `request` may be changed.
        """
        ...
