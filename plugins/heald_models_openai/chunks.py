"""Assembles a streamed answer from its chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from heald_agent import ModelReply
from heald_models_openai.bodies import read_arguments
from heald_session import ToolCall, Usage

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

FINISH = {"function_call": "tool_calls"}
"""Reasons to stop that go by another name here."""


@attrs.define
class CallParts:
    """A tool call as far as it has arrived."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def add(self, part: ChoiceDeltaToolCall) -> None:
        """Take the next part; the id comes whole, the others may come in pieces."""
        self.id = self.id or part.id or ""
        if part.function is not None:
            self.name += part.function.name or ""
            self.arguments += part.function.arguments or ""


@attrs.define
class Assembly:
    """An answer as far as it has arrived."""

    text: str = ""
    finish: str | None = None
    """Why the model stopped; None while it has not."""
    usage: Usage | None = None
    _refused: bool = False
    _calls: dict[int, CallParts] = attrs.field(factory=dict)

    def add(self, chunk: ChatCompletionChunk) -> str:
        """Take a chunk and return the text it brings."""
        if chunk.usage is not None:
            self.usage = _usage(chunk.usage)
        text = ""
        for choice in chunk.choices:
            delta = choice.delta
            self._refused = self._refused or bool(delta.refusal)
            text += (delta.content or "") + (delta.refusal or "")
            for part in delta.tool_calls or ():
                self._calls.setdefault(self._place(part), CallParts()).add(part)
            if choice.finish_reason is not None:
                self.finish = FINISH.get(choice.finish_reason, choice.finish_reason)
        self.text += text
        return text

    def reply(self) -> ModelReply:
        """Return the settled answer."""
        calls = tuple(
            ToolCall(parts.id, parts.name, read_arguments(parts.arguments))
            for _, parts in sorted(self._calls.items())
        )
        finish = "refusal" if self._refused else self.finish or "stop"
        if calls and finish == "stop":  # some servers say so though the model calls tools
            finish = "tool_calls"
        return ModelReply(text=self.text, tool_calls=calls, finish=finish, usage=self.usage)

    def _place(self, part: ChoiceDeltaToolCall) -> int:
        """Return which call a part belongs to; some servers leave the number out."""
        number: int | None = part.index
        if number is not None:
            return number
        return len(self._calls) if part.id or not self._calls else max(self._calls)


def _usage(usage: CompletionUsage) -> Usage:
    details = usage.prompt_tokens_details
    cached = details.cached_tokens if details is not None else None
    return Usage(usage.prompt_tokens, usage.completion_tokens, cached or 0)
