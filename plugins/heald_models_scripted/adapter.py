"""The adapter that plays scripts."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Iterator

import msgspec

from heald import CancelToken, HealdError, Scope, describe, did_you_mean
from heald_agent import ModelFailed, ModelReply, ModelRequest, TextDelta
from heald_models_scripted.hookspecs import scripts
from heald_models_scripted.script import Conversation, Reply, Script
from heald_session import AssistantMessage, ToolCall, Usage

PIECES = 24
"""How many pieces an answer's text arrives in, at most."""


class ScriptedModels:
    """Answers as the script says that the model's name names; needs no network and no key."""

    name = "scripted"

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def stream(
        self, request: ModelRequest, *, cancel: CancelToken
    ) -> AsyncIterator[TextDelta | ModelReply]:
        """Play the script's next reply; waiting ends at once when cancelled."""
        reply = await self._played(request)
        await _wait(reply.delay, cancel)
        for piece in pieces(reply.text):
            cancel.check()
            yield TextDelta(piece)
            await asyncio.sleep(0)
        if reply.failure is not None:
            raise _failed(request, reply.failure, "the script says so")
        yield _settled(reply, request)

    async def _played(self, request: ModelRequest) -> Reply:
        script = self._script(request)
        try:
            played = script.play(Conversation(request))
            return played if isinstance(played, Reply) else await played
        except HealdError:
            raise
        except Exception as error:
            reason = f"the script raised {describe(error)}"
            raise _failed(request, "invalid_request", reason) from error

    def _script(self, request: ModelRequest) -> Script:
        known = {c.value.name: c.value for c in self._scope.collect(scripts)}
        if (script := known.get(request.model)) is None:
            reason = f"there is no script {request.model!r}; {did_you_mean(request.model, known)}"
            raise _failed(request, "invalid_request", reason)
        return script


def pieces(text: str) -> Iterator[str]:
    """Cut text between words into a few pieces, losing nothing."""
    words = re.findall(r"\s*\S+\s*", text) or ([text] if text else [])
    size = math.ceil(len(words) / PIECES)
    for start in range(0, len(words), max(size, 1)):
        yield "".join(words[start : start + size])


def estimated_usage(request: ModelRequest, reply: Reply) -> Usage:
    """Estimate tokens as a quarter of the characters, which is the same every time."""
    asked = [request.system, *(_written(part) for part in (*request.messages, *request.tools))]
    said = [reply.text, *(_written(call.arguments) for call in reply.calls)]
    return Usage(sum(map(len, asked)) // 4, sum(map(len, said)) // 4)


def _settled(reply: Reply, request: ModelRequest) -> ModelReply:
    before = sum(len(m.tool_calls) for m in request.messages if isinstance(m, AssistantMessage))
    calls = tuple(
        ToolCall(f"call-{before + n}", call.tool, call.arguments)
        for n, call in enumerate(reply.calls, 1)
    )
    finish = "tool_calls" if calls else "stop"
    usage = estimated_usage(request, reply)
    return ModelReply(text=reply.text, tool_calls=calls, finish=finish, usage=usage)


async def _wait(seconds: float, cancel: CancelToken) -> None:
    """Wait, but not longer than the answer is wanted; raises `Cancelled`."""
    if seconds > 0:
        with cancel.as_future() as unwanted:
            await asyncio.wait({unwanted}, timeout=seconds)
    cancel.check()


def _written(part: object) -> str:
    return msgspec.json.encode(part).decode()


def _failed(request: ModelRequest, kind: str, reason: str) -> ModelFailed:
    return ModelFailed(f"{request.adapter}:{request.model}", kind, reason)
