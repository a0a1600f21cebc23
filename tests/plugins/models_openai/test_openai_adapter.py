from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest

from heald import Cancelled, CancelToken, Row
from heald.testing import HostFactory
from heald_agent import (
    ModelAdapter,
    ModelFailed,
    ModelReply,
    ModelRequest,
    TextDelta,
    agents,
    models,
)
from heald_models_openai import OpenAINotInstalled
from heald_session import AssistantMessage, ToolCall, ToolResult, ToolSchema, Usage, UserMessage

REQUEST = ModelRequest(
    adapter="openai",
    model="tiny-1",
    system="Be brief.",
    messages=(
        UserMessage("m1", "read it"),
        AssistantMessage("", [ToolCall("c1", "read", {"path": "ü.txt"})], "tool_calls"),
        ToolResult("c1", "read", "contents"),
        AssistantMessage("Oops", [ToolCall("c2", "read", "{broken")], "tool_calls"),
        ToolResult("c2", "read", "invalid arguments", is_error=True),
    ),
    tools=(ToolSchema("read", "Read a file.", {"type": "object", "properties": {}}),),
)


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> Any:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "tiny-1"}
    return {**head, "choices": choices, **more}


def part(index: int, arguments: str = "", **more: Any) -> dict[str, Any]:
    name = more.pop("name", None)
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"tool_calls": [{"index": index, "function": function, **more}]}


@asynccontextmanager
async def adapter(
    heald_host: HostFactory,
    config: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[ModelAdapter]:
    rows = [Row("models-openai", "models-openai", config or {})]
    async with heald_host(rows=rows, env=env) as host:
        (contribution,) = host.scope.collect(models)
        yield contribution.value


async def ask(
    model: ModelAdapter, request: ModelRequest = REQUEST, heard: list[str] | None = None
) -> tuple[list[str], ModelReply]:
    pieces: list[str] = [] if heard is None else heard
    async for item in model.stream(request, cancel=CancelToken()):
        if isinstance(item, ModelReply):
            return pieces, item
        pieces.append(item.text)
    pytest.fail("the stream ended without a reply")


async def test_text_arrives_in_pieces_and_settles_with_its_usage(
    heald_host: HostFactory, chat_server: Any
) -> None:
    counted = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    usage = {**counted, "prompt_tokens_details": {"cached_tokens": 8}}
    chat_server.stream(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Good "}),
        chunk({"content": "day."}),
        chunk({}, "stop"),
        chunk(usage=usage),
    )
    async with adapter(heald_host, {"base_url": chat_server.url}) as model:
        pieces, reply = await ask(model)
    assert pieces == ["Good ", "day."]
    assert reply == ModelReply(text="Good day.", finish="stop", usage=Usage(12, 3, 8))


async def test_tool_calls_are_put_together_from_their_parts(
    heald_host: HostFactory, chat_server: Any
) -> None:
    chat_server.stream(
        chunk(part(0, id="a", type="function", name="read")),
        chunk(part(0, '{"pa')),
        chunk(part(1, '{"n"', id="b", type="function", name="glob")),
        chunk(part(0, 'th": "x"}')),
        chunk(part(1, ": 2")),
        chunk({}, "tool_calls"),
    )
    async with adapter(heald_host, {"base_url": chat_server.url}) as model:
        _, reply = await ask(model)
    assert reply.tool_calls == (
        ToolCall("a", "read", {"path": "x"}),
        ToolCall("b", "glob", '{"n": 2'),
    )
    assert reply.finish == "tool_calls"


async def test_the_body_says_everything_the_request_has(
    heald_host: HostFactory, chat_server: Any
) -> None:
    chat_server.stream(chunk({"content": "ok"}, "stop"))
    config = {"base_url": chat_server.url, "parameters": {"temperature": 0}}
    async with adapter(heald_host, config, {"OPENAI_API_KEY": "k-1"}) as model:
        await ask(model)
    assert chat_server.headers[0]["authorization"] == "Bearer k-1"
    body = json.loads(chat_server.bodies[0])
    calls = [m.get("tool_calls") for m in body["messages"]]
    assert [m["role"] for m in body["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert calls[2][0]["function"] == {"name": "read", "arguments": '{"path":"ü.txt"}'}
    assert calls[4][0]["function"]["arguments"] == "{broken"
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "c1", "content": "contents"}
    assert body["tools"][0]["function"]["name"] == "read"
    assert body["stream_options"] == {"include_usage": True}
    assert (body["temperature"], body["stream"], body["model"]) == (0, True, "tiny-1")


async def test_a_request_rebuilt_from_bytes_makes_the_same_bytes(
    heald_host: HostFactory, chat_server: Any
) -> None:
    def again(part: Any) -> Any:
        return msgspec.json.decode(msgspec.json.encode(part), type=type(part))

    rebuilt = attrs.evolve(
        REQUEST,
        messages=tuple(again(message) for message in REQUEST.messages),
        tools=tuple(again(tool) for tool in REQUEST.tools),
    )
    for _ in range(2):
        chat_server.stream(chunk({"content": "ok"}, "stop"))
    async with adapter(heald_host, {"base_url": chat_server.url}) as model:
        await ask(model)
        await ask(model, rebuilt)
    assert chat_server.bodies[0] == chat_server.bodies[1]


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (401, {"message": "bad key k-secret", "code": "invalid_api_key"}, "authentication"),
        (403, {"message": "not you"}, "authentication"),
        (404, {"message": "no such model"}, "invalid_request"),
        (400, {"message": "bad"}, "invalid_request"),
        (400, {"message": "no", "code": "content_filter"}, "refused"),
        (408, {"message": "slow"}, "timeout"),
        (429, {"message": "later", "code": "rate_limit_exceeded"}, "rate_limit"),
        (500, {"message": "broken"}, "server"),
        (503, {"message": "full"}, "server"),
    ],
)
async def test_a_refusal_becomes_the_kind_of_failure_it_is(
    heald_host: HostFactory, chat_server: Any, status: int, error: dict[str, str], kind: str
) -> None:
    chat_server.refuse(status, error)
    config = {"base_url": chat_server.url}
    async with adapter(heald_host, config, {"OPENAI_API_KEY": "k-secret"}) as model:
        with pytest.raises(ModelFailed) as failure:
            await ask(model)
    assert failure.value.kind == kind
    assert failure.value.model == "openai:tiny-1"
    assert error["message"].replace("k-secret", "[key]") in failure.value.reason
    assert chat_server.url in failure.value.reason
    assert ("OPENAI_API_KEY" in failure.value.reason) is (kind == "authentication")
    assert "k-secret" not in str(failure.value)
    assert len(chat_server.bodies) == 1


@pytest.mark.parametrize("key", ["k", "none"])
async def test_a_key_that_is_a_mere_placeholder_leaves_the_text_alone(
    heald_host: HostFactory, chat_server: Any, key: str
) -> None:
    chat_server.refuse(401, {"message": "bad key, there is none like it"})
    config = {"base_url": chat_server.url}
    async with adapter(heald_host, config, {"OPENAI_API_KEY": key}) as model:
        with pytest.raises(ModelFailed, match="bad key, there is none like it"):
            await ask(model)


async def test_a_refused_key_is_told_of_by_the_variable_it_came_from(
    heald_host: HostFactory, chat_server: Any
) -> None:
    config = {"base_url": chat_server.url, "api_key_env": "MY_KEY"}
    said = []
    for env in ({"MY_KEY": "k-secret"}, {}):
        chat_server.refuse(401, {"message": "no"})
        async with adapter(heald_host, config, env) as model:
            with pytest.raises(ModelFailed) as failure:
                await ask(model)
        said.append(str(failure.value))
    assert f"{chat_server.url} with the key in MY_KEY: " in said[0]
    assert f"{chat_server.url} without a key in MY_KEY: " in said[1]
    assert all("; check the key, and that the environment variable" in text for text in said)


async def test_an_error_inside_a_stream_is_a_failure(
    heald_host: HostFactory, chat_server: Any
) -> None:
    chat_server.stream(chunk({"content": "Well"}), {"error": {"message": "overloaded"}})
    async with adapter(heald_host, {"base_url": chat_server.url}) as model:
        with pytest.raises(ModelFailed, match="overloaded") as failure:
            await ask(model)
    assert failure.value.kind == "server"


async def test_a_connection_that_drops_gives_its_text_first_and_then_fails(
    heald_host: HostFactory, chat_server: Any
) -> None:
    chat_server.stream(chunk({"content": "half of"}), done=False)
    pieces: list[str] = []
    async with adapter(heald_host, {"base_url": chat_server.url}) as model:
        with pytest.raises(ModelFailed) as failure:
            await ask(model, heard=pieces)
    assert pieces == ["half of"]
    assert failure.value.kind == "network"


async def test_a_stream_that_ends_without_a_reason_broke_off(
    heald_host: HostFactory, chat_server: Any
) -> None:
    chat_server.stream(chunk({"content": "half of"}))
    async with adapter(heald_host, {"base_url": chat_server.url}) as model:
        with pytest.raises(ModelFailed, match="broke off") as failure:
            await ask(model)
    assert failure.value.kind == "network"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"),
        ("http://me:secret@127.0.0.1:9/v1?key=secret", "http://127.0.0.1:9/v1"),
        ("127.0.0.1:9", "127.0.0.1:9"),
        ("http://me:secret@[::1", "http://[::1"),
    ],
)
async def test_a_server_that_cannot_be_reached_is_named_and_is_a_network_failure(
    heald_host: HostFactory, url: str, shown: str
) -> None:
    async with adapter(heald_host, {"base_url": url}) as model:
        with pytest.raises(ModelFailed) as failure:
            await ask(model)
    assert failure.value.kind == "network"
    assert failure.value.reason.startswith(f"{shown}: ")
    assert "secret" not in str(failure.value)
    assert str(failure.value).endswith(
        "check the server's address and that it can be reached, then try again"
    )


async def test_a_server_that_says_nothing_times_out(
    heald_host: HostFactory, chat_server: Any
) -> None:
    async def nothing(_writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    chat_server.answers.append(nothing)
    config = {"base_url": chat_server.url, "timeout_s": 0.2}
    async with adapter(heald_host, config) as model:
        with pytest.raises(ModelFailed) as failure:
            await ask(model)
    assert failure.value.kind == "timeout"


async def test_cancelling_hangs_up(heald_host: HostFactory, chat_server: Any) -> None:
    chat_server.hang(chunk({"content": "and so on"}))
    cancel = CancelToken()
    async with adapter(heald_host, {"base_url": chat_server.url}) as model:
        stream = model.stream(REQUEST, cancel=cancel)
        assert await anext(aiter(stream)) == TextDelta("and so on")
        waiting = asyncio.ensure_future(anext(aiter(stream)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(chat_server.hung_up.wait(), 10)


async def test_a_cancelled_token_ends_the_stream_at_its_next_piece(
    heald_host: HostFactory, chat_server: Any
) -> None:
    chat_server.stream(chunk({"content": "a"}), chunk({"content": "b"}), chunk({}, "stop"))
    cancel = CancelToken()
    async with adapter(heald_host, {"base_url": chat_server.url}) as model:
        stream = aiter(model.stream(REQUEST, cancel=cancel))
        assert await anext(stream) == TextDelta("a")
        cancel.cancel("enough")
        with pytest.raises(Cancelled, match="enough"):
            await anext(stream)


async def test_without_a_key_the_default_server_is_not_asked(heald_host: HostFactory) -> None:
    async with adapter(heald_host, {"api_key_env": "MY_KEY"}) as model:
        with pytest.raises(ModelFailed, match="without a key in MY_KEY") as failure:
            await ask(model)
    assert failure.value.kind == "authentication"
    assert "base_url" in failure.value.reason


async def test_the_environment_names_the_server(heald_host: HostFactory, chat_server: Any) -> None:
    chat_server.stream(chunk({"content": "here"}, "stop"))
    async with adapter(heald_host, env={"OPENAI_BASE_URL": chat_server.url}) as model:
        _, reply = await ask(model)
    assert reply.text == "here"


async def test_without_the_package_the_error_says_what_to_install(
    heald_host: HostFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    async with adapter(heald_host, env={"OPENAI_API_KEY": "k"}) as model:
        with pytest.raises(OpenAINotInstalled, match=r"pip install 'heald\[openai\]'"):
            await ask(model)


def test_nothing_of_the_client_is_loaded_before_a_request() -> None:
    code = (
        "import sys, heald_models_openai.plugin;"
        "print([m for m in sys.modules if m.partition('.')[0] in ('openai', 'pydantic')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_whole_turn_runs_on_a_server(
    heald_host: HostFactory, chat_server: Any, tmp_path: Path
) -> None:
    chat_server.stream(
        chunk(part(0, "{}", id="", type="function", name="nothing")), chunk({}, "stop")
    )
    chat_server.stream(chunk({"content": "I could not."}, "stop"))
    rows = [
        Row("session", "session"),
        Row("agent", "agent"),
        Row("local", "models-openai", {"name": "local", "base_url": chat_server.url}),
    ]
    async with heald_host(rows=rows) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="local:tiny:7b")
        await agent.send("do it")
        outcome = await agent.settled()
    assert (outcome.outcome, outcome.text) == ("completed", "I could not.")
    asked = json.loads(chat_server.bodies[1])
    assert asked["model"] == "tiny:7b"
    said, answered = asked["messages"][-2:]
    assert said["tool_calls"][0]["id"] == answered["tool_call_id"] == "call-1"
    assert "There is no tool 'nothing'" in answered["content"]
