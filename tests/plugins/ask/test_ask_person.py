"""A model asks, a person answers, and the model reads what was answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from heald import Discovery, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_agent import agents, tools
from heald_agent.testing import Person
from heald_models_scripted import Call, Reply, Script, scripts, steps
from heald_session import ToolResult

QUESTION = {"question": "Which colour?", "options": ["red", "blue"]}
NAMES = ("session", "agent", "models-scripted", "ask", "person", "scripts")


class Scripts(Plugin[NoConfig]):
    @implements(scripts)
    def give(self) -> Iterable[Script]:
        asking = Reply(calls=(Call(tool="ask_person", arguments=QUESTION),))
        return [steps("asks", [asking, Reply(text="Then so be it.")])]


async def result_of_asking(
    heald_host: HostFactory,
    cwd: Path,
    person: Person,
    *answer: Any,
    agent: Mapping[str, object] | None = None,
) -> ToolResult:
    """Let a model ask, give the answer if there is one, and return what the model read."""
    rows = [Row(n, n, (agent or {}) if n == "agent" else {}) for n in NAMES]
    discovery = Discovery(program={"scripts": Scripts, "person": person.plugin()})
    async with heald_host(rows=rows, discovery=discovery) as host:
        asker = await host.scope.require(agents).create(cwd=cwd, model="scripted:asks")
        await asker.send("go")
        if answer:
            opened = await person.asked()
            assert (opened.kind, opened.text) == ("question", "Which colour?")
            assert opened.options == ["red", "blue"]
            await person.answer(*answer)
        assert (await asker.settled()).text == "Then so be it."
        (result,) = [m for m in asker.session.history() if isinstance(m, ToolResult)]
        return result


async def test_the_answer_is_what_the_model_reads(heald_host: HostFactory, tmp_path: Path) -> None:
    result = await result_of_asking(heald_host, tmp_path, Person(), "answered", "blue")
    assert (result.text, result.is_error) == ("blue", False)


async def test_an_empty_answer_is_an_answer(heald_host: HostFactory, tmp_path: Path) -> None:
    result = await result_of_asking(heald_host, tmp_path, Person(), "answered", "")
    assert (result.text, result.is_error) == ("", False)


async def test_a_declined_question_says_so_and_how_to_go_on(
    heald_host: HostFactory, tmp_path: Path
) -> None:
    result = await result_of_asking(heald_host, tmp_path, Person(), "denied", "ask my boss")
    assert result.is_error
    assert "the person declined (ask my boss)" in result.text
    assert "Go on as seems best" in result.text


async def test_where_nobody_is_there_the_model_learns_it_at_once(
    heald_host: HostFactory, tmp_path: Path
) -> None:
    result = await result_of_asking(heald_host, tmp_path, Person(there=False))
    assert result.is_error
    assert "nobody is there to answer" in result.text


async def test_a_person_who_does_not_answer_holds_nothing_up_for_ever(
    heald_host: HostFactory, tmp_path: Path
) -> None:
    soon = {"ask_deadline_s": 0.01, "tool_timeout_s": 600.0}
    result = await result_of_asking(heald_host, tmp_path, Person(), agent=soon)
    assert result.is_error
    assert "nobody answered in 0.01 s" in result.text


async def test_cancelling_the_turn_ends_the_ask(heald_host: HostFactory, tmp_path: Path) -> None:
    person = Person()
    discovery = Discovery(program={"scripts": Scripts, "person": person.plugin()})
    async with heald_host(rows=[Row(n, n) for n in NAMES], discovery=discovery) as host:
        asker = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:asks")
        await asker.send("go")
        await person.asked()
        asker.cancel("never mind")
        assert (await asyncio.wait_for(asker.settled(), 30)).outcome == "aborted"
        (decided,) = [e.data for e in asker.session.hot() if e.type == "ask/decided"]
        assert decided["outcome"] == "cancelled"


async def test_the_tool_changes_nothing(heald_host: HostFactory) -> None:
    async with heald_host(rows=[Row("ask", "ask")]) as host:
        (tool,) = host.scope.collect(tools)
        assert (tool.value.name, tool.value.changes) == ("ask_person", False)
