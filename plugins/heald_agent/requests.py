"""Model requests: folds of the session's log, and whom they are for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from heald import Scope
from heald_agent.adapters import ModelAdapter, ModelRequest
from heald_agent.errors import ModelUnknown
from heald_agent.hookspecs import models
from heald_session import AssistantMessage, Message, Session

T = TypeVar("T")


def adapter_of(scope: Scope, model: str) -> ModelAdapter:
    """Return the adapter that `adapter:name` is for; raise `ModelUnknown`."""
    adapters = {c.value.name: c.value for c in scope.collect(models)}
    adapter, _, name = model.partition(":")
    if not name or adapter not in adapters:
        raise ModelUnknown(model, tuple(sorted(adapters)))
    return adapters[adapter]


def request_of(
    session: Session, model: str, messages: Sequence[Message] | None = None
) -> ModelRequest:
    """Make the request that the log comes to now: its last context, its model-visible messages.

    With `messages`, it has those instead. It shares nothing that could be changed with the session.
    """
    adapter, _, name = model.partition(":")
    context = session.context()
    return ModelRequest(
        adapter=adapter,
        model=name,
        system=context.system if context else "",
        messages=tuple(map(_own, session.history() if messages is None else messages)),
        tools=tuple(_copied(tool) for tool in context.tools) if context else (),
    )


def fingerprint(request: ModelRequest) -> bytes:
    """Return the request as bytes; two requests are the same if these are."""
    return msgspec.json.encode(request)


def _own(message: Message) -> Message:
    """Return a message that has nothing changeable in common with the one given."""
    changeable = isinstance(message, AssistantMessage) and message.tool_calls
    return _copied(message) if changeable else message


def _copied(part: T) -> T:
    return msgspec.json.decode(msgspec.json.encode(part), type=type(part))
