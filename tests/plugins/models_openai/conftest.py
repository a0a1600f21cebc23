"""A server on this machine that speaks the chat completions format as it is told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import attrs
import pytest

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@attrs.define
class ChatServer:
    """Gives each request the next of its answers, and keeps what it was asked."""

    answers: list[Answer] = attrs.field(factory=list)
    bodies: list[bytes] = attrs.field(factory=list)
    headers: list[dict[str, str]] = attrs.field(factory=list)
    port: int = 0
    hung_up: asyncio.Event = attrs.field(factory=asyncio.Event)
    """Set when a client closes its connection before the answer is whole."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = [line.partition(": ") for line in head.split("\r\n")[1:] if line]
            headers = {name.lower(): value for name, _, value in lines}
            self.headers.append(headers)
            self.bodies.append(await reader.readexactly(int(headers["content-length"])))
            await self.answers.pop(0)(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def stream(self, *chunks: dict[str, Any], done: bool = True, then: Any = None) -> None:
        """Answer the next request with chunks; without `done` the connection breaks after them."""

        async def answer(writer: asyncio.StreamWriter) -> None:
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
            )
            for chunk in chunks:
                _write(writer, f"data: {json.dumps(chunk)}\n\n")
                await writer.drain()
            if then is not None:
                await then(writer)
            if done:
                _write(writer, "data: [DONE]\n\n")
                writer.write(b"0\r\n\r\n")

        self.answers.append(answer)

    def refuse(self, status: int, error: dict[str, Any]) -> None:
        """Answer the next request with an error."""

        async def answer(writer: asyncio.StreamWriter) -> None:
            body = json.dumps({"error": error}).encode()
            writer.write(
                f"HTTP/1.1 {status} No\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            )
            writer.write(body)

        self.answers.append(answer)

    def hang(self, *chunks: dict[str, Any]) -> None:
        """Answer with chunks and then nothing, until the client hangs up."""

        async def wait(writer: asyncio.StreamWriter) -> None:
            try:
                while True:
                    writer.write(b"1\r\n\n\r\n")  # an empty line, which means nothing
                    await writer.drain()
                    await asyncio.sleep(0.01)
            finally:
                self.hung_up.set()

        self.stream(*chunks, then=wait)


def _write(writer: asyncio.StreamWriter, text: str) -> None:
    data = text.encode()
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


@pytest.fixture
async def chat_server() -> AsyncIterator[ChatServer]:
    """Return a server that is listening."""
    server = ChatServer()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    yield server
    listening.close()
