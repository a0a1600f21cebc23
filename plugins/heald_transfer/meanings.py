"""What each event of a conversation means here, given what came before it in its log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import msgspec

from heald_session import (
    AssistantMessage,
    SessionRenamed,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    ToolSchema,
    ToolStart,
    TurnContext,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)
from heald_transfer import reference_data as shape

UNKNOWN_MODEL = "unknown:unknown"
"""The model of a step that was broken off before the log named one."""


class Untranslatable(Exception):
    """An event that has no meaning here, though its type has."""


@attrs.define
class Talk:
    """What earlier events of a log say that a later one needs."""

    model: str | None = None
    step: int | None = None
    """The event that began the running step."""
    finish: str | None = None
    """Why the model stopped, as the stream's last chunk said."""
    tools: dict[str, str] = attrs.field(factory=dict)
    """Names of tools by the id of the call."""
    lost: Counter[str] = attrs.field(factory=Counter)
    _inbox: dict[str, list[Any]] = attrs.field(factory=dict)

    def splice(self, target: str, start: int, removed: int, inserted: list[Any]) -> None:
        """Follow one lane of the inbox."""
        self._inbox.setdefault(target, [])[start : start + removed] = inserted

    def waiting(self) -> int:
        """Return how many messages are in the inbox."""
        return sum(map(len, self._inbox.values()))


Meaning = Callable[[Any, Talk], tuple[str, Any] | None]
"""Returns the type and data of an event of ours, or None for one that is kept as it is."""


def _turn_start(data: Any, talk: Talk) -> tuple[str, Any]:
    talk.step = None
    return "turn/start", TurnStart(msgspec.convert(data, shape.Turn).turn)


def _turn_end(data: Any, talk: Talk) -> tuple[str, Any]:
    talk.step = None
    found = msgspec.convert(data, shape.TurnEnd)
    kind = str(found.reason.get("kind"))
    if kind == "completed":
        return "turn/end", TurnEnd(found.turn, "completed")
    cause = _cause(found.reason) or kind
    return "turn/end", TurnEnd(found.turn, "aborted" if kind == "aborted" else "failed", cause)


def _cause(reason: Mapping[str, Any]) -> str | None:
    """Return the most that a reason says: a message, or the kind of what is behind it."""
    for name in ("message", "error", "reason"):
        match reason.get(name):
            case str(text) if text:
                return text
            case {"message": str(text)} | {"kind": str(text)}:
                return text
    return None


def _step_start(data: Any, talk: Talk) -> tuple[str, Any]:
    found = msgspec.convert(data, shape.Step)
    talk.finish = None
    return "step/start", StepStart(found.turn, found.step, talk.model or UNKNOWN_MODEL)


def _step_end(data: Any, talk: Talk) -> tuple[str, Any]:
    found = msgspec.convert(data, shape.Step)
    talk.step = None
    return "step/end", StepEnd(found.turn, found.step)


def _user_message(data: Any, talk: Talk) -> tuple[str, Any]:
    found = msgspec.convert(data, shape.UserMessage)
    kind, sender = found.source.get("kind"), found.source.get("senderSessionId")
    if kind != "user" and not isinstance(sender, str):
        talk.lost[f"that {kind} wrote a message, which stands as a person's"] += 1
    text = _text(found.content, "messages to the model", talk)
    return "user/message", UserMessage(found.id, text, sender if isinstance(sender, str) else None)


def _assistant_message(data: Any, talk: Talk) -> tuple[str, Any]:
    found = msgspec.convert(data, shape.AssistantMessage)
    calls = [_tool_call(b, talk) for b in found.message.content if b.get("type") == "tool-call"]
    said = [block for block in found.message.content if block.get("type") != "tool-call"]
    talk.model = _model(found.message.source) or talk.model
    answer = AssistantMessage(
        _text(said, "answers", talk),
        calls,
        talk.finish or ("tool_calls" if calls else "stop"),
        _usage(found.usage),
    )
    return "assistant/message", answer


def _tool_call(block: Mapping[str, Any], talk: Talk) -> ToolCall:
    match block:
        case {"id": str(id_), "name": str(name)}:
            talk.tools[id_] = name
            return ToolCall(id_, name, _arguments(block.get("arguments")))
    raise Untranslatable


def _arguments(written: Any) -> Any:
    """Return what the model wrote as JSON, or as the text it is if it is none of ours."""
    try:
        found = msgspec.json.decode(written)
    except (TypeError, msgspec.MsgspecError, RecursionError):
        return written
    return found if isinstance(found, dict) else written


def _usage(usage: shape.Usage | None) -> Usage | None:
    if usage is None:
        return None
    return Usage(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)


def _tool_start(data: Any, talk: Talk) -> tuple[str, Any]:
    found = msgspec.convert(data, shape.Call)
    talk.tools[found.call_id] = found.name
    return "tool/start", ToolStart(found.call_id, found.name)


def _tool_result(data: Any, talk: Talk) -> tuple[str, Any]:
    (found,) = msgspec.convert(data, shape.ToolResult).message.content
    name = talk.tools.get(found.tool_call_id)
    if name is None:
        raise Untranslatable
    text = _text(found.content, "tool results", talk)
    return "tool/result", ToolResult(found.tool_call_id, name, text, found.is_error)


def _request_header(data: Any, talk: Talk) -> tuple[str, Any]:
    found = msgspec.convert(data, shape.RequestHeader).header
    talk.model = _model(found.config) or talk.model
    if found.config.keys() - {"provider", "model"}:
        talk.lost["settings of model requests, such as the longest answer"] += 1
    tools = [ToolSchema(tool.name, tool.description, tool.parameters) for tool in found.tools]
    return "turn/context", TurnContext(found.system, tools)


def _model(source: Mapping[str, Any]) -> str | None:
    match source:
        case {"provider": str(provider), "model": str(model)}:
            return f"{provider}:{model}"
    return None


def _text(blocks: list[dict[str, Any]], where: str, talk: Talk) -> str:
    """Return the text of blocks; others are counted as lost."""
    for block in blocks:
        if block.get("type") != "text":
            talk.lost[f"{block.get('type')} in {where}"] += 1
    texts = (block.get("text") for block in blocks if block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def _chunk(data: Any, talk: Talk) -> None:
    """Remember what a stream's last chunk says; the settled message has the rest."""
    match data:
        case {"chunk": {"type": "finish", "reason": {"kind": str(kind)}}}:
            talk.finish = kind.replace("-", "_")


def _spliced(data: Any, talk: Talk) -> None:
    found = msgspec.convert(data, shape.Splice)
    talk.splice(found.target, found.start, found.removed_count, found.inserted)


def _title(data: Any, talk: Talk) -> tuple[str, Any]:
    match data:
        case {"title": str(title)}:
            talk.lost["where titles came from"] += 1
            return "session/renamed", SessionRenamed(title)
    raise Untranslatable


def _preset_selected(data: Any, _talk: Talk) -> tuple[str, Any]:
    match data:
        case {"agentPreset": str(preset)}:
            return "agent-preset/selected", {"preset": preset}
    raise Untranslatable


_DESCRIPTOR = {
    "version": "version",
    "mode": "mode",
    "provider": "provider",
    "label": "label",
    "agentProvider": "agent_provider",
    "agentModel": "model",
}


def _descriptor(data: Any, talk: Talk) -> tuple[str, Any]:
    """Keep a descriptor that says more than ours can as it is: it is then no identity.

    What it says may be a limit, and a child must not be resumed without its limits.
    """
    if not isinstance(data, dict) or data.keys() - _DESCRIPTOR.keys():
        talk.lost["subagent descriptors of a form that is not known: such a child is corrupt"] += 1
        return "subagent/descriptor", data
    return "subagent/descriptor", {_DESCRIPTOR[name]: value for name, value in data.items()}


MEANINGS: Mapping[str, Meaning] = {
    "turn/start": _turn_start,
    "turn/end": _turn_end,
    "step/start": _step_start,
    "step/end": _step_end,
    "user/message": _user_message,
    "assistant/message": _assistant_message,
    "assistant/chunk": _chunk,
    "tool/call": _tool_start,
    "tool/result": _tool_result,
    "request/header": _request_header,
    "agent/inbox/spliced": _spliced,
    "session/title": _title,
    "agent-preset/selected": _preset_selected,
    "subagent/descriptor": _descriptor,
}
