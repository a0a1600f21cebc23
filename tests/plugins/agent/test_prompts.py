"""The system prompt: sections that rows render as a turn begins, and what is logged of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from heald import Host, Row
from heald_agent import Agent, PromptSection, agents, prompt_sections
from heald_session import TurnContext

HostWith = Callable[..., AbstractAsyncContextManager[Host]]


async def ready(host: Host, cwd: Path) -> Agent:
    return await host.scope.require(agents).create(cwd=cwd, model="scripted:echo")


def logged(agent: Agent, *types: str) -> list[Any]:
    return [event.data for event in agent.session.hot() if event.type in types]


def types_of(agent: Agent) -> list[str]:
    """Return the types of the events since the first turn opened."""
    types = [event.type for event in agent.session.hot()]
    return types[types.index("turn/start") :]


def section(name: str, text: Callable[[Agent], str]) -> PromptSection:
    async def render(agent: Agent) -> str:
        return text(agent)

    return PromptSection(name, render)


class Waiting:
    """A section that waits until it is let go."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    async def render(self, agent: Agent) -> str:
        self.begun.set()
        await self.go_on.wait()
        return "It waited."


async def test_the_context_is_logged_when_it_differs_and_only_then(
    host_with: HostWith, tmp_path: Path
) -> None:
    mood = ["calm"]
    sections = [
        section("mood", lambda _agent: f"Be {mood[0]}.\n"),
        section("empty", lambda _agent: ""),
        section("place", lambda agent: f"You are in {agent.session.header.cwd}."),
    ]
    async with host_with(sections=sections) as host:
        agent = await ready(host, tmp_path)
        for _ in range(2):
            await agent.send("hello")
            await agent.settled()
        assert logged(agent, "turn/context") == [
            {"system": f"Be calm.\n\nYou are in {tmp_path}.", "tools": []}
        ]
        mood[0] = "bold"
        await agent.send("hello")
        await agent.settled()
        context = agent.session.context()
        assert isinstance(context, TurnContext)
        assert context.system.startswith("Be bold.")
        assert len(logged(agent, "turn/context")) == 2


async def test_a_section_may_log_before_the_context_that_has_its_text(
    host_with: HostWith, tmp_path: Path
) -> None:
    def rename(agent: Agent) -> str:
        agent.session.append("session/renamed", {"title": "named"})
        return "It has a name."

    async with host_with(sections=[section("naming", rename)]) as host:
        agent = await ready(host, tmp_path)
        await agent.send("hello")
        await agent.settled()

        assert types_of(agent)[:5] == [
            "turn/start",
            "user/message",
            "session/renamed",
            "turn/context",
            "step/start",
        ]


async def test_a_section_that_waits_is_cancelled_with_its_turn(
    host_with: HostWith, tmp_path: Path
) -> None:
    waiting = Waiting()
    async with host_with(sections=[PromptSection("waiting", waiting.render)]) as host:
        agent = await ready(host, tmp_path)
        await agent.send("hello")
        await waiting.begun.wait()

        agent.cancel("never mind")
        outcome = await agent.settled()

        assert (outcome.outcome, outcome.cause) == ("aborted", "never mind")
        assert types_of(agent) == ["turn/start", "user/message", "turn/end"]


async def test_what_is_said_while_a_section_waits_joins_the_turn(
    host_with: HostWith, tmp_path: Path
) -> None:
    waiting = Waiting()
    async with host_with(sections=[PromptSection("waiting", waiting.render)]) as host:
        agent = await ready(host, tmp_path)
        await agent.send("hello")
        await waiting.begun.wait()

        await agent.send("and this", lane="steer")
        waiting.go_on.set()
        await agent.settled()

        assert [said["text"] for said in logged(agent, "user/message")] == ["hello", "and this"]
        assert len(logged(agent, "turn/start")) == 1


async def test_a_turn_has_the_sections_it_began_with_wherever_its_session_goes(
    host_with: HostWith, tmp_path: Path
) -> None:
    waiting = Waiting()
    sections = [PromptSection("waiting", waiting.render), section("last", lambda _: "Below.")]
    async with host_with(sections=sections) as host:
        above = await host.mount("above", [Row("persona", "persona", {"text": "Above."})])
        agent = await ready(host, tmp_path)
        await agent.send("hello")
        await waiting.begun.wait()

        agent.session.scope.move_to(above)
        assert len(agent.session.scope.collect(prompt_sections)) == 3
        waiting.go_on.set()
        await agent.settled()

        (context,) = logged(agent, "turn/context")
        assert context["system"] == "It waited.\n\nBelow."
        await agent.dispose()


async def failed(host_with: HostWith, cwd: Path, render: Callable[[Agent], Any]) -> str:
    """Have a turn whose section fails, and return the error."""
    async with host_with(sections=[PromptSection("odd", render)]) as host:
        agent = await ready(host, cwd)
        await agent.send("hello")
        outcome = await agent.settled()
        assert logged(agent, "step/start", "turn/context") == []
        assert logged(agent, "turn/end") == [
            {"turn": 1, "outcome": "failed", "cause": outcome.cause}
        ]
    assert outcome.error is not None
    assert outcome.error.code == "PROMPT_SECTION_FAILED"
    assert "'odd' of row brings" in str(outcome.error)
    return str(outcome.error)


async def test_a_section_that_fails_fails_the_turn_and_names_its_row(
    host_with: HostWith, tmp_path: Path
) -> None:
    async def render(_agent: Agent) -> str:
        return str(1 // 0)

    assert "ZeroDivisionError" in await failed(host_with, tmp_path, render)


async def test_a_section_that_exits_ends_nothing_but_the_turn(
    host_with: HostWith, tmp_path: Path
) -> None:
    async def render(_agent: Agent) -> str:
        sys.exit(3)

    assert "sys.exit(3)" in await failed(host_with, tmp_path, render)


async def test_a_section_that_is_no_async_function_is_told_so(
    host_with: HostWith, tmp_path: Path
) -> None:
    assert "await" in await failed(host_with, tmp_path, lambda _agent: "Be quick.")


FILE_WORK = {"open", "stat", "lstat", "scandir", "listdir", "readlink", "access"}


@contextmanager
def file_work_of_this_thread() -> Iterator[list[str]]:
    """Note which functions of the operating system this thread calls to look at files."""
    called: list[str] = []

    def note(frame: FrameType, event: str, function: Any) -> None:
        name = getattr(function, "__name__", "")
        if event == "c_call" and name in FILE_WORK and function.__module__ in ("posix", "_io"):
            called.append(f"{name} in {frame.f_code.co_filename}:{frame.f_lineno}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(before)


async def test_the_files_of_a_prompt_are_read_beside_the_loop(
    host_with: HostWith, tmp_path: Path
) -> None:
    skill = tmp_path / ".heald" / "skills" / "fold" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: To fold.\n---\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    extra = [Row(name, name) for name in ("projection", "commands", "instructions", "skills")]
    async with host_with(extra=extra) as host:
        agent = await ready(host, tmp_path)
        with file_work_of_this_thread() as called:
            skill.stat()
            assert len(called) == 1, "it is noticed"
            called.clear()

            await agent.send("hello")
            outcome = await agent.settled()

        assert outcome.outcome == "completed"
        (context,) = logged(agent, "turn/context")
        assert "Use tabs." in context["system"]
        assert "- fold: To fold." in context["system"]
        assert called == []
