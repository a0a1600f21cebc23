"""One tool call, from what the model wrote to what the model reads; nothing it meets is raised."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import msgspec

from heald import Cancelled, HealdError, describe, did_you_mean
from heald_agent.answers import legible
from heald_agent.context import TurnTools
from heald_agent.contracts import Agent
from heald_agent.errors import ToolError
from heald_agent.hookspecs import tool_call, tool_guards
from heald_agent.limits import Limits, limited
from heald_agent.tool import AnyTool, ToolContext, ToolReply, ToolRequest
from heald_session import ToolCall

_logger = logging.getLogger("heald_agent")


@attrs.frozen
class Runnable:
    """A call that may run: its tool is there and its arguments fit."""

    tool: AnyTool
    arguments: Any
    request: ToolRequest


def prepare(agent: Agent, tools: TurnTools, call: ToolCall, limits: Limits) -> Runnable | ToolReply:
    """Find the tool and convert the arguments; what cannot run becomes an error result."""
    tool = tools.available.get(call.name)
    if tool is None:
        return refusal(_absent(call.name, tools))
    try:
        arguments = msgspec.convert(call.arguments, tool.arguments)
    except msgspec.ValidationError as error:
        return refusal(_unfit(tool, call.arguments, str(error)))
    except Exception as error:  # noqa: BLE001 - a tool's own checks may raise anything
        return refusal(_unfit(tool, call.arguments, describe(error)))
    cwd = Path(agent.session.header.cwd) if agent.session.header.cwd else Path.cwd()
    context = ToolContext(agent=agent, call_id=call.id, cwd=cwd, cancel=limits.cancel)
    return Runnable(tool, arguments, ToolRequest(call, context, tool.changes))


def refused_by_guard(runnable: Runnable) -> ToolReply | None:
    """Ask every guard; the first that refuses, or that fails, says why the call does not run."""
    agent = runnable.request.context.agent
    for guard in agent.session.scope.collect(tool_guards):
        try:
            reason = guard.value(runnable.request)
        except Exception as error:
            _logger.exception("tool guard of row %s failed", guard.origin.row)
            reason = f"the guard of row {guard.origin.row} failed: {describe(error)}"
        if reason is not None:
            return refusal(f"Refused: {reason}")
    return None


async def execute(runnable: Runnable, limits: Limits) -> ToolReply:
    """Run the body inside every middleware; whatever goes wrong is the result."""
    name = runnable.tool.name
    agent = runnable.request.context.agent
    around = agent.session.scope.around(tool_call, _body(runnable), runnable.request)
    try:
        reply = await limited(around, limits, f"tool {name} of {agent.session.id}")
    except Exception as error:  # noqa: BLE001 - whatever it is, the model reads it
        return refusal(_failure(name, error, limits))
    return finalised(name, reply)


def finalised(name: str, reply: Any) -> ToolReply:
    """Return a reply as the log can hold it."""
    if not isinstance(reply, ToolReply) or not isinstance(reply.text, str):
        return refusal(f"Tool {name!r} failed: its result is not text.")
    return attrs.evolve(reply, text=legible(reply.text))


def refusal(reason: str) -> ToolReply:
    """Return an error result."""
    return ToolReply(legible(reason), is_error=True)


def _body(runnable: Runnable) -> Callable[[ToolRequest], Awaitable[ToolReply]]:
    """Return the innermost call; the arguments are those that were validated and no others."""
    call = runnable.request.call
    written = msgspec.json.encode(call)

    async def run(request: ToolRequest) -> ToolReply:
        if msgspec.json.encode(request.call) != written:
            raise ToolError("a middleware of `tool_call` changed the call; nothing ran")
        return ToolReply(await runnable.tool.run(runnable.arguments, request.context))

    return run


def _failure(name: str, error: Exception, limits: Limits) -> str:
    if isinstance(error, ToolError):
        return error.message()
    if isinstance(error, Cancelled) and limits.cancel.cancelled:
        return f"Cancelled while running ({limits.cancel.cause}); what it did so far may stand."
    if isinstance(error, HealdError):
        return f"{error.code}: {error.message()}"
    _logger.warning("tool %s failed", name, exc_info=error)
    return f"Tool {name!r} failed: {describe(error)}"


def _absent(name: str, tools: TurnTools) -> str:
    if name in tools.denied:
        return f"Tool {name!r} is not available to this agent."
    return f"There is no tool {name!r}; {did_you_mean(name, tools.available)}"


def _unfit(tool: AnyTool, arguments: Any, reason: str) -> str:
    if isinstance(arguments, str):
        reason = "they are not a JSON object"
    return (
        f"Invalid arguments for tool {tool.name!r}: {reason}. "
        f"Call it again with arguments that fit its schema."
    )
