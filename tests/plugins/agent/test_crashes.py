from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from heald import Host
from heald_agent import ModelReply, ModelRequest, agents
from heald_session import AssistantMessage, Message, SessionId, ToolResult, UserMessage

HostWith = Callable[..., AbstractAsyncContextManager[Host]]
PROGRAM = Path(__file__).with_name("crashing.py")


def kill_in(phase: str, home: Path, cwd: Path) -> None:
    """Run the program up to a phase and kill it there."""
    info = cwd / "crash-site" / "crashing-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: crashing\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[heald.plugins]\ncrashing = crashing:Crashing\n")
    command = [sys.executable, str(PROGRAM), str(home), str(cwd), phase]
    env = {**os.environ, "PYTHONPATH": str(info.parent)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as program:
        assert program.stdout is not None
        assert program.stdout.readline().strip() == "reached"
        program.send_signal(signal.SIGKILL)


def check_legal(messages: tuple[Message, ...]) -> None:
    """Check what providers insist on: each call answered once, at once, and no empty answer."""
    rest = list(messages)
    while rest:
        message = rest.pop(0)
        assert not isinstance(message, ToolResult)
        if isinstance(message, AssistantMessage):
            assert message.text or message.tool_calls
            for call in message.tool_calls:
                result = rest.pop(0)
                assert isinstance(result, ToolResult)
                assert result.call_id == call.id


EXPECTED = {
    "accepted": [],
    "streaming": [],
    "running": ["unknown", "never ran"],
    "asking": ["unknown", "never ran"],
    "beside": ["used quick", "unknown", "never ran"],
    "unflushed": ["unknown", "never ran"],
    "answered": ["used quick", "used after"],
}


@pytest.mark.parametrize("phase", EXPECTED)
async def test_a_killed_turn_leaves_a_session_that_can_go_on(
    host_with: HostWith, heald_home: Path, tmp_path: Path, phase: str
) -> None:
    asked: list[ModelRequest] = []

    async def watch(
        request: ModelRequest, call_next: Callable[[ModelRequest], Awaitable[ModelReply]]
    ) -> ModelReply:
        asked.append(request)
        return await call_next(request)

    kill_in(phase, heald_home, tmp_path)
    async with host_with(storage=True, around_model=watch) as host:
        agent = await host.scope.require(agents).resume(SessionId("crashed"), model="scripted:echo")
        delivered = await agent.settled()
        await agent.send("go on")
        await agent.settled()
        events = [(event.type, event.data) for event in agent.session.hot()]
    messages = asked[-1].messages
    check_legal(messages)
    told = [message.text for message in messages if isinstance(message, UserMessage)]
    assert told == ["the task", "go on"]
    results = [message for message in messages if isinstance(message, ToolResult)]
    for expected, result in zip(EXPECTED[phase], results, strict=True):
        assert expected in result.text
    started = [data["turn"] for type_, data in events if type_ == "turn/start"]
    ended = [data["turn"] for type_, data in events if type_ == "turn/end"]
    assert started == ended == sorted(set(started))
    assert delivered.text == ("the task" if phase == "accepted" else delivered.text)
    decided = [data["outcome"] for type_, data in events if type_ == "ask/decided"]
    assert decided == (["expired"] if phase == "asking" else [])
