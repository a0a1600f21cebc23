"""`heald agents`, run as a person runs it."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.plugins.subagent.conftest import OpenWorld

ONE_SHOT: dict[str, Any] = {"version": 2, "mode": "one-shot", "provider": "spawn"}
CONTINUABLE = {"version": 2, "mode": "continuable", "provider": "spawn", "label": "helper\x1b[2J"}


@pytest.fixture
async def home(open_world: OpenWorld, heald_home: Path) -> Path:
    """Store a tree: a parent, two children, a grandchild, and a child of a parent that is gone."""
    profile = heald_home / "profiles" / "alone" / "heald.toml"
    profile.parent.mkdir(parents=True)
    profile.write_text(PROFILE)
    async with open_world() as world:
        await world.session("parent-1", live=False)
        await world.session("parent-2", live=False)
        more: dict[str, Any] = {"live": False}
        await world.child("a", CONTINUABLE, parent="parent-1", created_at=1, **more)
        await world.child("aa", ONE_SHOT, parent="a", created_at=2, **more)
        await world.child("b", {"version": 3}, parent="parent-1", created_at=3, **more)
        await world.child("c", ONE_SHOT, parent="vanished", created_at=4, **more)
    return heald_home


PROFILE = "".join(
    f'[[rows]]\nid = "{name}"\nplugin = "{name}"\n'
    for name in ("session", "persistence", "projection", "projection-cache", "query", "subagent")
)


async def run(home: Path, *arguments: str, verb: str = "list") -> CompletedProcess[str]:
    command = [sys.executable, "-m", "heald", "--home", str(home), "--profile", "alone"]
    return await asyncio.to_thread(
        subprocess.run,
        [*command, "agents", verb, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def table(result: CompletedProcess[str]) -> Sequence[Sequence[str]]:
    assert (result.returncode, result.stderr) == (0, "")
    return [line.split() for line in result.stdout.splitlines()]


async def ids(home: Path, *arguments: str) -> list[str]:
    return [row["id"] for row in json.loads((await run(home, *arguments, "--json")).stdout)]


async def test_children_are_a_table_of_id_activity_mode_label_and_whether_they_have_any(
    home: Path,
) -> None:
    assert table(await run(home, "parent-1")) == [
        ["id", "activity", "mode", "label", "has", "children"],
        ["a", "inactive", "continuable", "helper\\x1b[2J", "yes"],
        ["b", "corrupt", "-", "-", "-"],
    ]


async def test_descendants_have_their_parent_and_depth(home: Path) -> None:
    assert table(await run(home, "parent-1", "--descendants")) == [
        ["id", "activity", "mode", "label", "has", "children", "parent", "depth"],
        ["a", "inactive", "continuable", "helper\\x1b[2J", "yes", "parent-1", "1"],
        ["aa", "inactive", "one-shot", "-", "no", "a", "2"],
        ["b", "corrupt", "-", "-", "-", "parent-1", "1"],
    ]


async def test_json_is_an_array_of_rows(home: Path) -> None:
    assert json.loads((await run(home, "parent-1", "--json")).stdout) == [
        {
            "kind": "child",
            "id": "a",
            "activity": "inactive",
            "has_children": True,
            "mode": "continuable",
            "label": "helper\x1b[2J",
        },
        {"kind": "diagnostic", "id": "b", "reason": "corrupt"},
    ]
    tree = json.loads((await run(home, "parent-1", "--json", "--descendants")).stdout)
    assert [(row["id"], row["parent_id"], row["depth"]) for row in tree] == [
        ("a", "parent-1", 1),
        ("aa", "a", 2),
        ("b", "parent-1", 1),
    ]


async def test_a_session_without_subagents_says_so(home: Path) -> None:
    result = await run(home, "parent-2")
    assert (result.returncode, result.stdout) == (0, "No subagents.\n")
    assert (await run(home, "parent-2", "--json")).stdout == "[]\n"


async def test_the_beginning_of_an_id_is_enough_if_only_one_fits(home: Path) -> None:
    assert await ids(home, "van") == ["c"]
    result = await run(home, "parent")
    assert result.returncode == 1
    assert "SESSION_ID_AMBIGUOUS" in result.stderr
    assert "parent-1, parent-2" in result.stderr


async def test_a_whole_id_that_begins_another_is_that_session(home: Path) -> None:
    assert await ids(home, "a") == ["aa"]


async def test_a_parent_that_is_gone_still_has_its_children(home: Path) -> None:
    assert await ids(home, "vanished") == ["c"]


async def test_an_id_that_nobody_has_or_names_is_not_found(home: Path) -> None:
    result = await run(home, "nobody")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("heald: SESSION_NOT_FOUND: no session 'nobody'")


async def tree(home: Path, *arguments: str) -> CompletedProcess[str]:
    return await run(home, *arguments, verb="tree")


async def test_a_tree_shows_every_agent_below_a_session_with_its_time_and_tokens(
    home: Path,
) -> None:
    result = await tree(home, "parent-1")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "a  inactive  continuable  helper\\x1b[2J  0.0 s  0 tokens",
        "  aa  inactive  one-shot  0.0 s  0 tokens",
        "b  corrupt",
        "3 agents in all  0.0 s  0 tokens",
    ]


async def test_what_neither_a_cell_nor_a_checkpoint_tells_is_a_dash(home: Path) -> None:
    shutil.rmtree(home / "cache")
    lines = (await tree(home, "parent-1")).stdout.splitlines()
    assert lines[1] == "  aa  inactive  one-shot  -  - tokens"
    assert lines[-1] == "3 agents in all  -  - tokens  (3 of them not known)"


async def test_a_tree_adds_up_what_its_agents_worked_and_used(
    open_world: OpenWorld, heald_home: Path
) -> None:
    (heald_home / "profiles" / "alone").mkdir(parents=True)
    (heald_home / "profiles" / "alone" / "heald.toml").write_text(PROFILE)
    async with open_world() as world:
        for ident, tokens in (("a", 30), ("b", 12)):
            child = await world.child(ident, ONE_SHOT, parent="top")
            clock = [world.host.now()]
            world.host.now = partial(clock.__getitem__, 0)
            child.append("turn/start", {"turn": 1})
            clock[0] += 61_500
            usage = {"input_tokens": tokens, "output_tokens": 1}
            child.append("assistant/message", {"text": "done", "finish": "stop", "usage": usage})
            child.append("turn/end", {"turn": 1, "outcome": "completed"})
            await world.store.dispose(child)
    lines = (await tree(heald_home, "top")).stdout.splitlines()
    assert lines == [
        "a  inactive  one-shot  1 min 2 s  31 tokens",
        "b  inactive  one-shot  1 min 2 s  13 tokens",
        "2 agents in all  2 min 3 s  44 tokens",
    ]


async def test_a_tree_is_shown_in_pages_that_say_how_to_go_on(home: Path) -> None:
    first = (await tree(home, "parent-1", "--limit", "1")).stdout.splitlines()
    assert first[0].startswith("a  inactive")
    assert first[-1] == "More: heald agents tree parent-1 --limit 1 --after a"
    rest = (await tree(home, "parent-1", "--after", "a")).stdout.splitlines()
    assert [line.split()[0] for line in rest] == ["aa", "b", "3"]


async def test_a_tree_can_be_of_one_activity(home: Path) -> None:
    assert (await tree(home, "parent-1", "--activity", "running")).stdout == "No subagents.\n"
    shown = json.loads((await tree(home, "parent-1", "--activity", "inactive", "--json")).stdout)
    assert [(row["id"], row["worked_ms"], row["tokens"]) for row in shown] == [
        ("a", 0, 0),
        ("aa", 0, 0),
    ]


async def test_a_followed_tree_shows_what_another_process_adds(
    home: Path, open_world: OpenWorld
) -> None:
    command = [sys.executable, "-m", "heald", "--home", str(home), "--profile", "alone"]
    following = await asyncio.create_subprocess_exec(
        *command, "agents", "tree", "parent-1", "--follow", stdout=asyncio.subprocess.PIPE
    )
    assert following.stdout is not None
    try:
        while b"3 agents" not in await following.stdout.readline():
            pass
        async with open_world() as world:
            await world.child("late", ONE_SHOT, parent="parent-1", live=False)
        assert (await following.stdout.readline()).startswith(b"late  inactive  one-shot")
    finally:
        following.terminate()
        await following.wait()


async def test_show_tells_what_one_agent_is(home: Path) -> None:
    result = await run(home, "aa", verb="show")
    assert (result.returncode, result.stderr) == (0, "")
    told = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert told == {
        "id": "aa",
        "activity": "inactive",
        "mode": "one-shot",
        "provider": "spawn",
        "parent": "a",
        "depth": "1",
        "preset": "-",
        "cwd": "/loom",
        "worked": "0.0 s",
        "tokens": "0",
    }
    shown = json.loads((await run(home, "a", "--json", verb="show")).stdout)["identity"]
    assert (shown["mode"], shown["label"]) == ("continuable", "helper\x1b[2J")


async def test_show_says_of_each_id_it_cannot_show_which_it_is_and_what_to_do(home: Path) -> None:
    corrupt = await run(home, "b", verb="show")
    assert (corrupt.returncode, "cannot be resumed" in corrupt.stderr) == (1, True)
    ordinary = await run(home, "parent-1", verb="show")
    assert (ordinary.returncode, "SESSION_NOT_SUBAGENT" in ordinary.stderr) == (1, True)
    assert "heald sessions show parent-1" in ordinary.stderr
    missing = await run(home, "no/such", verb="show")
    assert (missing.returncode, "SESSION_NOT_FOUND" in missing.stderr) == (1, True)
    for name in ("tail.jsonl", "session.json"):
        (home / "sessions" / "aa" / name).write_bytes(b"\xff")
    damaged = await run(home, "aa", verb="show")
    assert (damaged.returncode, "SESSION_DAMAGED" in damaged.stderr) == (1, True)
    assert "heald sessions salvage" in damaged.stderr
