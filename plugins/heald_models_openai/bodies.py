"""Request bodies: what a model request is in the chat completions format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from heald_agent import ModelRequest
from heald_session import AssistantMessage, Message, ToolCall, ToolResult, ToolSchema


def body_of(request: ModelRequest, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request; the same request is the same body, byte for byte."""
    body: dict[str, Any] = dict(parameters)
    body["model"] = request.model
    body["messages"] = list(_messages(request))
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    body["stream"] = True
    body["stream_options"] = {"include_usage": True}
    return body


def _messages(request: ModelRequest) -> Iterator[dict[str, Any]]:
    if request.system:
        yield {"role": "system", "content": request.system}
    for message in request.messages:
        yield _message(message)


def _message(message: Message) -> dict[str, Any]:
    if isinstance(message, ToolResult):
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if isinstance(message, AssistantMessage):
        said: dict[str, Any] = {"role": "assistant", "content": message.text or None}
        if message.tool_calls:
            said["tool_calls"] = [_call(call) for call in message.tool_calls]
        return said
    return {"role": "user", "content": message.text}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": written_arguments(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: ToolSchema) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def written_arguments(arguments: Any) -> str:
    """Return arguments as the model wrote them: text is what was no JSON object."""
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def read_arguments(written: str) -> Any:
    """Return arguments as JSON, or as the text they are if they are no JSON."""
    try:
        return msgspec.json.decode(written) if written.strip() else {}
    except (msgspec.DecodeError, RecursionError):
        return written
