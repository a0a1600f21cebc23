"""`heald agents list`, run as a person runs it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
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


async def run(home: Path, *arguments: str) -> CompletedProcess[str]:
    command = [sys.executable, "-m", "heald", "--home", str(home), "--profile", "alone"]
    return await asyncio.to_thread(
        subprocess.run,
        [*command, "agents", "list", *arguments],
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
