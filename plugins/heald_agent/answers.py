"""One model request: its streaming, and the settled answer whatever came in between."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import attrs

from heald import CancelToken
from heald_agent.adapters import ModelAdapter, ModelReply, ModelRequest, TextDelta
from heald_agent.errors import ModelFailed, RequestChanged
from heald_agent.hookspecs import model_call, text_streamed
from heald_agent.limits import Limits, limited
from heald_agent.requests import fingerprint
from heald_session import AssistantMessage, Session, ToolCall

LARGEST = 2**53
"""JSON numbers beyond this do not mean the same everywhere, and no log takes them."""

DEEPEST = 100
"""Arguments nested deeper are no tool's; kept as text, they are answered and do no harm."""


@attrs.define
class Answering:
    """A request on its way; `text` is what arrived so far of an answer that may never settle."""

    session: Session
    adapter: ModelAdapter
    request: ModelRequest
    silence: float
    """Seconds without any piece of the answer after which the request has failed."""
    text: str = ""
    streams: bool = attrs.field(default=True, kw_only=True)
    """Whether people see the answer arrive."""

    async def reply(self, limits: Limits) -> AssistantMessage:
        """Send the request inside every middleware and return the answer.

        Raises `Cancelled`, `ModelFailed`, `RequestChanged`, or what middleware raises.
        """
        sent = fingerprint(self.request)

        async def send(request: ModelRequest) -> ModelReply:
            if fingerprint(request) != sent:
                raise RequestChanged(self._model)
            return await self._stream(limits.cancel)

        around = self.session.scope.around(model_call, send, self.request)
        reply = await limited(around, limits, f"model request of {self.session.id}")
        return settled(reply, self.request)

    def interrupted(self) -> AssistantMessage | None:
        """Return what arrived of an answer that did not settle; None if nothing did."""
        return AssistantMessage(legible(self.text), finish="interrupted") if self.text else None

    @property
    def _model(self) -> str:
        return f"{self.request.adapter}:{self.request.model}"

    async def _stream(self, cancel: CancelToken) -> ModelReply:
        self.text = ""  # middleware may try again, and the new answer is not a part of the old
        stream = self.adapter.stream(self.request, cancel=cancel)
        try:
            while (item := await self._next(stream)) is not None:
                if isinstance(item, ModelReply):
                    return item
                self.text += item.text
                if self.streams:
                    self.session.scope.notify(text_streamed, self.session, item.text)
        finally:
            if hasattr(stream, "aclose"):
                await cast("Any", stream).aclose()
        raise ModelFailed(self._model, "server", "the answer ended before it was settled")

    async def _next(
        self, stream: AsyncIterator[TextDelta | ModelReply]
    ) -> TextDelta | ModelReply | None:
        try:
            async with asyncio.timeout(self.silence):
                return await anext(stream, None)
        except TimeoutError as error:
            reason = f"nothing arrived for {self.silence:g} s"
            raise ModelFailed(self._model, "timeout", reason) from error


def settled(reply: ModelReply, request: ModelRequest) -> AssistantMessage:
    """Return a reply as the log can hold it: text legible, calls each with an id of its own."""
    taken = {
        c.id for m in request.messages if isinstance(m, AssistantMessage) for c in m.tool_calls
    }
    calls = list(_distinct(reply.tool_calls, taken))
    return AssistantMessage(legible(reply.text), calls, reply.finish, reply.usage)


def legible(text: str) -> str:
    """Return text with what no UTF-8 can say spelt out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _distinct(calls: Iterable[ToolCall], taken: set[str]) -> Iterable[ToolCall]:
    for call in calls:
        stem, count, ident = call.id or "call", 0, call.id
        while not ident or ident in taken:
            count += 1
            ident = f"{stem}-{count}"
        taken.add(ident)
        yield ToolCall(legible(ident), legible(call.name), _loggable(call.arguments))


def _loggable(arguments: Any) -> Any:
    """Return arguments, or their text where the log would refuse them."""
    return arguments if _lossless(arguments, DEEPEST) else json.dumps(arguments, default=str)


def _lossless(value: Any, depth: int) -> bool:
    if type(value) is dict or type(value) is list:
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        keyed = isinstance(value, list) or all(type(key) is str for key in value)
        return keyed and depth > 0 and all(_lossless(part, depth - 1) for part in parts)
    if isinstance(value, str):
        return legible(value) == value
    if isinstance(value, int):
        return abs(value) <= LARGEST
    return value is None or (isinstance(value, float) and math.isfinite(value))
