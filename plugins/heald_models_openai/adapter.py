"""The adapter that asks an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from heald import CancelToken
from heald_agent import ModelFailed, ModelReply, ModelRequest, TextDelta
from heald_models_openai.bodies import body_of
from heald_models_openai.chunks import Assembly
from heald_models_openai.errors import OpenAINotInstalled
from heald_models_openai.failures import kind_of, reason_of, said_by
from heald_models_openai.server import Server

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

NO_KEY = "none"
"""Sent to a server of the person's own that may want no key; the client insists on some text."""


class OpenAIModels:
    """Asks one server through the `openai` package, which is imported with the first request."""

    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self._server = server
        self._client: AsyncOpenAI | None = None

    async def stream(
        self, request: ModelRequest, *, cancel: CancelToken
    ) -> AsyncIterator[TextDelta | ModelReply]:
        """Stream a chat completion; nothing is tried again here."""
        client = await self._connected(request)
        from openai import OpenAIError  # noqa: PLC0415 - loaded by now

        assembly = Assembly()
        try:
            async with await self._begun(client, request) as chunks:
                async for chunk in chunks:
                    cancel.check()
                    if text := assembly.add(chunk):
                        yield TextDelta(text)
        except OpenAIError as error:
            raise self._failed(request, kind_of(error), said_by(error)) from error
        except ValueError as error:
            reason = f"it sent what cannot be read: {said_by(error)}"
            raise self._failed(request, "server", reason) from error
        if assembly.finish is None:
            raise self._failed(request, "network", "the answer broke off")
        yield assembly.reply()

    async def close(self) -> None:
        """Let connections go."""
        if self._client is not None:
            await self._client.close()

    async def _begun(
        self, client: AsyncOpenAI, request: ModelRequest
    ) -> AsyncStream[ChatCompletionChunk]:
        from openai import AsyncStream  # noqa: PLC0415 - loaded by now
        from openai.types.chat import ChatCompletionChunk  # noqa: PLC0415

        body = body_of(request, self._server.parameters)
        return await client.post(
            "/chat/completions",
            body=body,
            cast_to=ChatCompletionChunk,
            stream=True,
            stream_cls=AsyncStream[ChatCompletionChunk],
        )

    async def _connected(self, request: ModelRequest) -> AsyncOpenAI:
        """Return the client, made with the first request."""
        server = self._server
        if server.key is None and server.base_url is None:
            said = "it wants one, and no `base_url` names a server of your own"
            raise self._failed(request, "authentication", said)
        try:
            openai: Any = await asyncio.to_thread(importlib.import_module, "openai")
        except ImportError as error:
            raise OpenAINotInstalled(_name_of(request)) from error
        if self._client is None:
            self._client = self._made(openai, request)
        return self._client

    def _made(self, openai: Any, request: ModelRequest) -> AsyncOpenAI:
        server = self._server
        try:
            client: AsyncOpenAI = openai.AsyncOpenAI(
                api_key=server.key or NO_KEY,
                base_url=server.url,
                timeout=server.timeout,
                max_retries=0,
            )
        except Exception as error:  # what is no URL is refused by a class of the client's own
            raise self._failed(request, "network", said_by(error)) from error
        return client

    def _failed(self, request: ModelRequest, kind: str, said: str) -> ModelFailed:
        return ModelFailed(_name_of(request), kind, reason_of(said, kind, self._server))


def _name_of(request: ModelRequest) -> str:
    return f"{request.adapter}:{request.model}"
