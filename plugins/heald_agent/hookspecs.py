"""The hooks that agents own."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from heald import collect, observe, provide, wrap
from heald_agent.adapters import ModelAdapter, ModelReply, ModelRequest
from heald_agent.asks import Answerer
from heald_agent.contracts import Agents
from heald_agent.events import AskOpened
from heald_agent.tool import AnyTool, PromptSection, ToolGuard, ToolReply, ToolRequest
from heald_session import Session


@provide
def agents() -> Agents:
    """Run the turns of sessions."""
    ...


@collect(key=attrgetter("name"))
def tools() -> Iterable[AnyTool]:
    """Contribute tools to every agent that runs on the row's composition."""
    ...


@collect
def tool_guards() -> Iterable[ToolGuard]:
    """Contribute callables that may refuse a tool call, and nothing else."""
    ...


@collect(key=attrgetter("name"))
def prompt_sections() -> Iterable[PromptSection]:
    """Contribute parts of the system prompt, which are rendered as each turn begins."""
    ...


@collect(key=attrgetter("name"))
def models() -> Iterable[ModelAdapter]:
    """Contribute model adapters."""
    ...


@wrap
async def model_call(request: ModelRequest) -> ModelReply:
    """Stand around a model request, its streaming included."""
    ...


@wrap
async def tool_call(request: ToolRequest) -> ToolReply:
    """Stand around the run of a tool's body, its arguments already validated."""
    ...


@observe
def text_streamed(session: Session, text: str) -> None:
    """Hear a piece of an answer as it arrives; the settled message has all of it."""


@collect
def answerers() -> Iterable[Answerer]:
    """Contribute callables that say whether somebody can answer a session's asks now.

    Where nobody can, an ask is denied at once instead of at its deadline.
    """
    ...


@observe
def ask_opened(session: Session, ask: AskOpened) -> None:
    """Hear that a person is asked something; it is durable, and `Agents.answer` decides it."""
