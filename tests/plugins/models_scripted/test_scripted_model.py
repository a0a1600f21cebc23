from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald import Cancelled, CancelToken, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_agent import ModelAdapter, ModelFailed, ModelReply, ModelRequest, models
from heald_models_scripted import Call, Conversation, Reply, Script, scripts, steps
from heald_session import AssistantMessage, Message, ToolCall, ToolResult, UserMessage

Adapter = Callable[..., AbstractAsyncContextManager[ModelAdapter]]


@pytest.fixture
def adapter(heald_host: HostFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Adapter:
    """Return a factory of the adapter, in a host whose row `brings` contributes scripts."""
    info = tmp_path / "site" / "brings-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brings\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[heald.plugins]\nbrings = brings_scripts:Brings\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    @asynccontextmanager
    async def opened(*brought: Script) -> AsyncIterator[ModelAdapter]:
        class Brings(Plugin[NoConfig]):
            @implements(scripts)
            def bring(self) -> Iterable[Script]:
                return brought

        module: Any = ModuleType("brings_scripts")
        module.Brings = Brings
        monkeypatch.setitem(sys.modules, "brings_scripts", module)
        rows = [Row("models-scripted", "models-scripted"), Row("brings", "brings")]
        async with heald_host(rows=rows) as host:
            (contribution,) = host.scope.collect(models)
            yield contribution.value

    return opened


def request(script: str, *messages: Message) -> ModelRequest:
    asked = messages or (UserMessage("m1", "go"),)
    return ModelRequest(adapter="scripted", model=script, system="", messages=asked, tools=())


async def played(
    model: ModelAdapter,
    asked: ModelRequest,
    cancel: CancelToken | None = None,
    heard: list[str] | None = None,
) -> tuple[list[str], ModelReply]:
    pieces: list[str] = [] if heard is None else heard
    async for item in model.stream(asked, cancel=cancel or CancelToken()):
        if isinstance(item, ModelReply):
            return pieces, item
        pieces.append(item.text)
    pytest.fail("the stream ended without a reply")


async def test_echo_answers_with_the_prompt(adapter: Adapter) -> None:
    async with adapter() as model:
        pieces, reply = await played(model, request("echo", UserMessage("m1", "three short words")))
    assert pieces == ["three ", "short ", "words"]
    assert reply.text == "three short words"


async def test_an_unknown_script_names_the_nearest(adapter: Adapter) -> None:
    async with adapter() as model:
        with pytest.raises(ModelFailed, match="did you mean 'echo'") as failure:
            await played(model, request("ecko"))
    assert (failure.value.kind, failure.value.model) == ("invalid_request", "scripted:ecko")


@given(st.text())
async def test_pieces_come_to_the_whole_text_and_are_few(text: str) -> None:
    from heald_models_scripted.adapter import PIECES, pieces

    cut = list(pieces(text))
    assert "".join(cut) == text
    assert len(cut) <= PIECES
    assert all(cut)


async def test_replies_follow_the_conversation_and_not_the_adapter(adapter: Adapter) -> None:
    script = steps("two", [Reply(calls=(Call(tool="read"), Call(tool="read"))), Reply(text="done")])
    first = (UserMessage("m1", "go"),)
    async with adapter(script) as model:
        _, called = await played(model, request("two", *first))
        _, again = await played(model, request("two", *first))
        assert called == again
        assert [call.id for call in called.tool_calls] == ["call-1", "call-2"]
        said = AssistantMessage("", list(called.tool_calls))
        results = [ToolResult(call.id, call.name, "x") for call in called.tool_calls]
        _, done = await played(model, request("two", *first, said, *results))
        assert (done.text, done.tool_calls) == ("done", ())
        ended = AssistantMessage("done")
        next_turn: list[Message] = [*first, said, *results, ended, UserMessage("m2", "again")]
        _, later = await played(model, request("two", *next_turn))
    assert [call.id for call in later.tool_calls] == ["call-3", "call-4"]


async def test_a_script_may_be_async_and_quote_what_tools_returned(adapter: Adapter) -> None:
    async def play(conversation: Conversation) -> Reply:
        await asyncio.sleep(0)
        return Reply(text=conversation.results("read")[-1].text)

    messages = (
        UserMessage("m1", "go"),
        AssistantMessage("", [ToolCall("c", "read", {})]),
        ToolResult("c", "read", "what it says"),
    )
    async with adapter(Script("quote", play)) as model:
        _, reply = await played(model, request("quote", *messages))
    assert reply.text == "what it says"


async def test_a_failure_comes_after_what_was_said(adapter: Adapter) -> None:
    script = steps("half", [Reply(text="half of it", failure="network")])
    heard: list[str] = []
    async with adapter(script) as model:
        with pytest.raises(ModelFailed) as failure:
            await played(model, request("half"), heard=heard)
    assert "".join(heard) == "half of it"
    assert failure.value.kind == "network"


async def test_a_script_that_raises_is_a_failed_request(adapter: Adapter) -> None:
    def play(conversation: Conversation) -> Reply:
        raise KeyError(conversation.prompt)

    async with adapter(Script("broken", play)) as model:
        with pytest.raises(ModelFailed, match="KeyError: 'go'") as failure:
            await played(model, request("broken"))
    assert failure.value.kind == "invalid_request"


async def test_a_delay_ends_at_once_when_cancelled(adapter: Adapter) -> None:
    cancel = CancelToken()
    async with adapter(steps("slow", [Reply(text="late", delay=3600)])) as model:
        waiting = asyncio.ensure_future(played(model, request("slow"), cancel))
        await asyncio.sleep(0)
        cancel.cancel("enough")
        with pytest.raises(Cancelled, match="enough"):
            await asyncio.wait_for(waiting, 10)


async def test_usage_is_an_estimate_that_is_always_the_same(adapter: Adapter) -> None:
    async with adapter() as model:
        asked = request("echo", UserMessage("m1", "a" * 400))
        (_, one), (_, two) = [await played(model, asked) for _ in range(2)]
    assert one.usage == two.usage
    assert one.usage is not None
    assert one.usage.output_tokens == 100
    assert one.usage.input_tokens > 100
