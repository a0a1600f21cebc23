"""What the package adds, seen through a real host, real agents and the scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from heald import CompositionError, Discovery, Host, Row
from heald.testing import HostFactory
from heald_agent import Agent, TurnOutcome, agents, tools
from heald_commands import CommandUnknown, command_directory
from heald_preset import presets
from heald_projection import units
from heald_query import session_query
from heald_session import Event, Header, LogOffset, Seq, SessionId, ToolResult, event_types
from heald_wordcount import COUNTED, WORD_COUNTS


async def counting(host: Host, work: Path, prompt: str) -> tuple[Agent, TurnOutcome]:
    registry = host.scope.require(agents)
    agent = await registry.create(cwd=work, preset="counting", model="scripted:counting")
    await agent.send(prompt)
    return agent, await agent.settled()


def heald(home: Path, *arguments: str) -> str:
    environ = {**os.environ, "HEALD_HOME": str(home)}
    command = [sys.executable, "-m", "heald", *arguments]
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout


async def test_the_tool_counts_and_logs_what_it_counted(host: Host, work: Path) -> None:
    agent, outcome = await counting(host, work, "one.txt two.txt")
    assert outcome.text == "one.txt has 4 words\ntwo.txt has 2 words"
    logged = [event.data for event in agent.session.hot() if event.type == COUNTED]
    assert logged == [{"path": "one.txt", "words": 4}, {"path": "two.txt", "words": 2}]


async def test_the_command_shows_the_newest_count_of_each_file(host: Host, work: Path) -> None:
    agent, _ = await counting(host, work, "one.txt two.txt")
    directory = agent.session.scope.require(command_directory)
    (work / "two.txt").write_text("now there are five words\n")
    await agent.send("two.txt")
    await agent.settled()
    assert (await directory.run(agent.session, "/words")).split("\n") == [
        "       4  one.txt",
        "       5  two.txt",
        "       9  in all",
    ]


async def test_a_session_without_counts_says_so(host: Host, work: Path) -> None:
    agent = await host.scope.require(agents).create(cwd=work, preset="counting")
    directory = agent.session.scope.require(command_directory)
    assert await directory.run(agent.session, "/words") == "no file was counted"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("image", "image is not a UTF-8 text file"),
        ("none.txt", "none.txt cannot be read: No such file or directory"),
    ],
)
async def test_a_file_that_cannot_be_counted_is_an_error_for_the_model(
    host: Host, work: Path, path: str, message: str
) -> None:
    agent, _ = await counting(host, work, path)
    (result,) = (m for m in agent.session.history() if isinstance(m, ToolResult))
    assert (result.is_error, result.text) == (True, message)
    assert not any(event.type == COUNTED for event in agent.session.hot())


async def test_only_agents_on_the_preset_have_the_tool_and_the_command(
    host: Host, work: Path
) -> None:
    registry = host.scope.require(agents)
    standard = await registry.create(cwd=work, preset="standard")
    mine = await registry.create(cwd=work, preset="counting")
    names = [
        {found.value.name for found in agent.session.scope.collect(tools)}
        for agent in (standard, mine)
    ]
    assert names[1] - names[0] == {"count_words"}
    assert names[0] < names[1]
    with pytest.raises(CommandUnknown):
        await host.scope.require(command_directory).run(standard.session, "/words")


async def test_the_preset_is_in_the_roster(host: Host, work: Path) -> None:
    roster = await host.scope.require(presets).roster(work)
    (preset,) = (preset for preset in roster if preset.id == "counting")
    assert (preset.root, preset.extends, preset.problem) == ("heald-wordcount", "standard", None)


async def test_a_stored_session_is_read_without_any_row_of_the_package(
    host: Host, work: Path, heald_host: HostFactory, heald_home: Path
) -> None:
    agent, _ = await counting(host, work, "one.txt two.txt")
    session = agent.session.id
    await agent.dispose()
    async with (
        heald_host() as bare,
        bare.scope.require(session_query).observe_session(session, [WORD_COUNTS]) as observation,
    ):
        assert observation.projections.values == {WORD_COUNTS: {"one.txt": 4, "two.txt": 2}}
    assert json.loads(heald(heald_home, "words", session, "--json")) == [
        {"path": "one.txt", "words": 4},
        {"path": "two.txt", "words": 2},
    ]
    assert heald(heald_home, "words", session) == "path     words\none.txt  4\ntwo.txt  2\n"


async def test_a_row_says_how_long_a_word_is(
    heald_host: HostFactory, work: Path, discovery: Discovery
) -> None:
    plugins = ["session", "agent", "models-scripted", "counting-script"]
    rows = [Row(plugin, plugin) for plugin in plugins]
    rows.append(Row("wordcount", "wordcount", {"shortest": 4}))
    async with heald_host(rows=rows, discovery=discovery) as host:
        registry = host.scope.require(agents)
        agent = await registry.create(cwd=work, model="scripted:counting")
        await agent.send("one.txt")
        assert (await agent.settled()).text == "one.txt has 2 words"


async def test_a_wrong_configuration_is_refused(heald_host: HostFactory) -> None:
    with pytest.raises(CompositionError, match=r"config\.shortest: .*it must be at least 1"):
        async with heald_host(rows=[Row("wordcount", "wordcount", {"shortest": 0})]):
            pass


def stored(seq: int, data: Any) -> Event:
    return Event(Seq(seq), COUNTED, 0, msgspec.Raw(msgspec.json.encode(data)))


async def test_the_projection_passes_over_what_does_not_fit(host: Host) -> None:
    unit = host.vocabulary(units).get(WORD_COUNTS)
    assert unit is not None
    header = Header(version=1, id=SessionId("s"), log_id="l", created_at=0)
    empty = unit.initial(header, LogOffset(0))
    state = unit.apply(empty, stored(0, {"path": "a", "words": 3}))
    assert (empty, state) == ({}, {"a": 3})
    for data in ({"path": "a", "words": 3}, {"path": "a", "words": "many"}, {"file": "b"}, None):
        assert unit.apply(state, stored(1, data)) is state


async def test_the_event_type_is_known_without_a_row(heald_host: HostFactory) -> None:
    async with heald_host(rows=[]) as bare:
        assert COUNTED in bare.vocabulary(event_types)
