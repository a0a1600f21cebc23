from __future__ import annotations

import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heald import Host
from heald_agent import Agent, ModelReply, ModelRequest, PromptSection, Tool, ToolContext, agents
from heald_agent.requests import request_of
from heald_models_scripted import Call, Conversation, Reply, Script
from heald_session import SessionId, session_store

HostWith = Callable[..., AbstractAsyncContextManager[Host]]
ID = SessionId("told")


class Anything(msgspec.Struct):
    value: Any = None


async def repeat(arguments: Anything, _context: ToolContext) -> str:
    return repr(arguments.value)


TOOLS = [Tool(name="repeat", description="Say again.", arguments=Anything, run=repeat)]
text = st.text(max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
calls = st.builds(
    Call,
    tool=st.sampled_from(["repeat", "nothing"]),
    arguments=st.dictionaries(st.sampled_from(["value", "other"]), json_values, max_size=2),
)
replies = st.builds(
    Reply,
    text=text,
    calls=st.lists(calls, max_size=3).map(tuple),
    failure=st.sampled_from([None, None, None, "server"]),
)
encodable = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(prompts=st.lists(encodable, min_size=1, max_size=3), script=st.lists(replies, max_size=6))
async def test_every_request_can_be_made_again_from_the_log_byte_for_byte(
    host_with: HostWith, prompts: list[str], script: list[Reply]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await rebuild(host_with, Path(folder), prompts, iter([*script]))


async def rebuild(host_with: HostWith, folder: Path, prompts: list[str], script: Any) -> None:
    sent: list[tuple[bytes, str]] = []

    async def keep(
        request: ModelRequest, call_next: Callable[[ModelRequest], Awaitable[ModelReply]]
    ) -> ModelReply:
        sent.append((msgspec.json.encode(request), f"{request.adapter}:{request.model}"))
        logs_alone = shutil.ignore_patterns("cache")  # what is derived may be being written
        shutil.copytree(folder / "home", folder / f"at-{len(sent)}", ignore=logs_alone)
        return await call_next(request)

    def play(_conversation: Conversation) -> Reply:
        return next(script, Reply(text="that is all"))

    async def count(_agent: Agent) -> str:
        return f"Prompt {len(sent)}."

    sections = [PromptSection("count", count)]
    async with host_with(
        tools=TOOLS,
        sections=sections,
        scripts=[Script("play", play)],
        around_model=keep,
        storage=True,
        home=folder / "home",
    ) as host:
        agent = await host.scope.require(agents).create(cwd=folder, model="scripted:play", id=ID)
        for prompt in prompts:
            await agent.send(prompt)
            await agent.settled()
    for number, (request, model) in enumerate(sent, 1):
        async with host_with(storage=True, home=folder / f"at-{number}") as host:
            session = await host.scope.require(session_store).resume(ID)
            assert msgspec.json.encode(request_of(session, model)) == request
    assert len(sent) >= len(prompts)
