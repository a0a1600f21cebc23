"""A todo list is written whole, logged, and folded into the projection `todos`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald import Discovery, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_agent import agents, tools
from heald_models_scripted import Call, Reply, Script, scripts, steps
from heald_projection import projections
from heald_session import Event, Seq, ToolResult
from heald_todo.projection import TODOS

NAMES = ("session", "projection", "agent", "models-scripted", "todo", "scripts")
FIRST = [{"text": "look", "status": "active"}, {"text": "mend", "status": "pending"}]
SECOND = [{"text": "look", "status": "done"}, {"text": "mend", "status": "active"}]


async def written(
    heald_host: HostFactory, cwd: Path, lists: Sequence[Any]
) -> tuple[list[ToolResult], Any, list[Any]]:
    """Let a model write lists; return what it read, the projection, and the events."""

    class Scripts(Plugin[NoConfig]):
        @implements(scripts)
        def give(self) -> Iterable[Script]:
            calls = [Reply(calls=(Call(tool="todo", arguments={"items": i}),)) for i in lists]
            return [steps("works", [*calls, Reply(text="done")])]

    rows = [Row(name, name) for name in NAMES]
    async with heald_host(rows=rows, discovery=Discovery(program={"scripts": Scripts})) as host:
        agent = await host.scope.require(agents).create(cwd=cwd, model="scripted:works")
        await agent.send("go")
        await agent.settled()
        results = [m for m in agent.session.history() if isinstance(m, ToolResult)]
        shown = host.scope.require(projections).snapshot(agent.session, ["todos"])
        events = [e.data for e in agent.session.hot() if e.type == "todo/written"]
        return results, shown.values["todos"], events


async def test_each_list_replaces_the_one_before(heald_host: HostFactory, tmp_path: Path) -> None:
    results, shown, events = await written(heald_host, tmp_path, [FIRST, SECOND])
    assert [r.text for r in results] == [
        "1 pending, 1 active\n[>] look\n[ ] mend",
        "1 active, 1 done\n[x] look\n[>] mend",
    ]
    assert shown == SECOND
    assert events == [{"items": FIRST}, {"items": SECOND}]


async def test_an_emptied_list_is_not_one_that_was_never_written(
    heald_host: HostFactory, tmp_path: Path
) -> None:
    (result,), shown, _ = await written(heald_host, tmp_path, [[]])
    assert (result.text, shown) == ("The list is empty.", [])
    assert (await written(heald_host, tmp_path, []))[1] is None


@pytest.mark.parametrize(
    "items",
    [
        [{"text": "look", "status": "soon"}],
        [{"text": "", "status": "done"}],
        [{"text": "x" * 501, "status": "done"}],
        [{"text": "look", "status": "done"}] * 101,
        [{"text": "look"}],
        "look",
    ],
)
async def test_what_is_no_list_is_refused_and_the_old_one_stands(
    heald_host: HostFactory, tmp_path: Path, items: Any
) -> None:
    results, shown, events = await written(heald_host, tmp_path, [FIRST, items])
    assert [r.is_error for r in results] == [False, True]
    assert "Invalid arguments for tool 'todo'" in results[1].text
    assert (shown, events) == (FIRST, [{"items": FIRST}])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(data=JSON)
def test_a_stored_list_that_no_longer_fits_leaves_the_one_before(data: Any) -> None:
    event = Event(Seq(0), "todo/written", 1, msgspec.Raw(msgspec.json.encode(data)))
    after = TODOS.apply(FIRST, event)
    assert after is FIRST or after == data["items"]


async def test_the_list_is_no_change_to_anything(heald_host: HostFactory) -> None:
    async with heald_host(rows=[Row("todo", "todo")]) as host:
        (tool,) = host.scope.collect(tools)
        assert not tool.value.changes
