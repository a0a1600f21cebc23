"""`heald agents`, run as a person runs it."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Any

import pytest
from tests.terminals import at_a_terminal, shown

from heald_session import SessionId

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


ROWS = ("session", "persistence", "projection", "projection-cache", "query", "subagent")
PROFILE = "".join(f'[[rows]]\nid = "{name}"\nplugin = "{name}"\n' for name in ROWS)


async def run(home: Path, *arguments: str, verb: str = "list") -> CompletedProcess[str]:
    command = [sys.executable, "-m", "heald", "--home", str(home), "--profile", "alone"]
    return await asyncio.to_thread(
        subprocess.run,
        [*command, "agents", verb, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
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
    first = (await tree(home, "parent-1", "--limit", "2")).stdout.splitlines()
    assert [line.split()[0] for line in first] == ["a", "aa", "3", "There"]
    assert first[-1] == "There are more; the same command with `--after aa` goes on."
    rest = (await tree(home, "parent-1", "--limit", "2", "--after", "aa")).stdout.splitlines()
    assert [line.split()[0] for line in rest] == ["b", "3"]


async def test_the_pages_of_one_activity_are_of_that_activity_to_the_end(home: Path) -> None:
    options = ("parent-1", "--activity", "inactive", "--limit", "1")
    first = (await tree(home, *options)).stdout.splitlines()
    assert [line.split()[0] for line in first] == ["a", "2", "There"]
    rest = (await tree(home, *options, "--after", "a")).stdout.splitlines()
    assert [line.split()[0] for line in rest] == ["aa", "2"]


async def test_a_page_may_begin_behind_an_agent_that_is_not_of_the_activity(home: Path) -> None:
    options = ("parent-1", "--activity", "inactive", "--after", "b")
    assert [line.split()[0] for line in (await tree(home, *options)).stdout.splitlines()] == ["2"]


@pytest.mark.parametrize("after", ["parent-1", "c", "nobody"])
async def test_a_page_behind_what_is_not_in_the_tree_says_that_it_is_not(
    home: Path, after: str
) -> None:
    result = await tree(home, "parent-1", "--after", after)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"heald: AGENT_NOT_IN_TREE: {after!r} is no agent below 'parent-1', or no longer; "
        "leave out --after\n"
    )


async def test_the_tree_of_hundreds_of_agents_is_gone_through_page_by_page(
    open_world: OpenWorld, heald_home: Path
) -> None:
    (heald_home / "profiles" / "alone").mkdir(parents=True)
    (heald_home / "profiles" / "alone" / "heald.toml").write_text(PROFILE)
    names = [f"agent {n:03} \x1b" for n in range(400)]
    async with open_world() as world:
        making = asyncio.Semaphore(8)

        async def make(n: int) -> None:
            parent = names[n - n % 20] if n % 20 else "top"
            async with making:
                await world.child(names[n], ONE_SHOT, parent=parent, live=False)

        await asyncio.gather(*map(make, range(len(names))))
    shown: list[str] = []
    command = ["top", "--limit", "150"]
    for count in (150, 150, 100):
        *lines, told = (await tree(heald_home, *command)).stdout.splitlines()
        if count == 150:
            last = re.fullmatch("There are more; the same command with `(.+)` goes on.", told)
            assert last is not None
            command = ["top", "--limit", "150", *shlex.split(last[1])]
            told = lines.pop()
        assert told == "400 agents in all  0.0 s  0 tokens"
        assert len(lines) == count
        shown += lines
    assert sorted(line.split()[1] for line in shown) == [f"{n:03}" for n in range(400)]
    assert sum(line.startswith("agent") for line in shown) == 20


async def test_a_subagent_whose_own_subagents_are_listed_is_said_to_be_one(home: Path) -> None:
    for verb in ("list", "tree"):
        result = await run(home, "a", verb=verb)
        assert (result.returncode, "aa  inactive" in result.stdout) == (0, True)
        assert result.stderr == (
            "a is itself a subagent of parent-1; only its own subagents are shown, and "
            "`heald agents show a` shows what it is\n"
        )
        assert (await run(home, "parent-1", verb=verb)).stderr == ""
    assert (await run(home, "a", verb="show")).stderr == ""


@pytest.mark.parametrize("verb", ["list", "tree", "show"])
@pytest.mark.parametrize(
    ("missing", "code"),
    [
        (["query"], "SUBAGENT_CONTROL_QUERY_UNAVAILABLE"),
        (["projection", "projection-cache", "query"], "SUBAGENT_CONTROL_PROJECTIONS_UNAVAILABLE"),
    ],
)
async def test_a_verb_without_a_service_says_which_row_to_mount(
    home: Path, verb: str, missing: Collection[str], code: str
) -> None:
    rows = [f'[[rows]]\nid = "{name}"\nplugin = "{name}"\n' for name in ROWS if name not in missing]
    (home / "profiles" / "alone" / "heald.toml").write_text("".join(rows))
    result = await run(home, "parent-1", verb=verb)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"heald: {code}: ")


async def test_a_tree_can_be_of_one_activity(home: Path) -> None:
    running = await tree(home, "parent-1", "--activity", "running")
    whole = (await tree(home, "parent-1")).stdout.splitlines()[-1]
    assert running.stdout == f"0 running, {whole}\n"
    assert (await tree(home, "aa", "--activity", "running")).stdout == "No subagents.\n"
    shown = json.loads((await tree(home, "parent-1", "--activity", "inactive", "--json")).stdout)
    assert [(row["id"], row["worked_ms"], row["tokens"]) for row in shown] == [
        ("a", 0, 0),
        ("aa", 0, 0),
    ]


async def test_a_followed_tree_shows_what_another_process_adds_and_what_changes(
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
        assert (await following.stdout.readline()).startswith(b"4 agents in all")
        async with open_world() as world:
            late = await world.store.resume(SessionId("late"))
            now = world.host.now() + 10_000
            world.host.now = lambda: now
            late.append("turn/start", {"turn": 1})
            world.host.now = lambda: now + 2500
            usage = {"input_tokens": 1200, "output_tokens": 34}
            late.append("assistant/message", {"text": "done", "finish": "stop", "usage": usage})
            late.append("turn/end", {"turn": 1, "outcome": "completed"})
            await world.store.dispose(late)
        assert (
            await following.stdout.readline() == b"late  inactive  one-shot  2.5 s  1,234 tokens\n"
        )
        total = b"4 agents in all  2.5 s  1,234 tokens\n"
        assert await following.stdout.readline() == total
    finally:
        following.terminate()
        await following.wait()


async def test_a_followed_tree_is_drawn_again_in_its_place_on_a_terminal(
    home: Path, open_world: OpenWorld
) -> None:
    command = ("--profile", "alone", "agents", "tree", "parent-1", "--follow")
    following = at_a_terminal(home, *command)
    await asyncio.to_thread(following.expect, "3 agents in all")
    async with open_world() as world:
        await world.child("late", ONE_SHOT, parent="parent-1", live=False)
    await asyncio.to_thread(following.expect, "late  inactive  one-shot")
    above = str(following.before).rpartition("aa  inactive")[0]
    assert above.count("\x1b[1A") == 3  # up from the last of four lines
    await asyncio.to_thread(following.expect, "4 agents in all")
    following.sendintr()
    rest = await asyncio.to_thread(following.read)
    following.close()
    assert following.exitstatus == 130
    assert "Traceback" not in rest


async def test_a_followed_tree_that_is_longer_than_the_terminal_keeps_its_last_line(
    home: Path, open_world: OpenWorld
) -> None:
    async with open_world() as world:
        for number in range(30):
            await world.child(f"more-{number:02}", ONE_SHOT, parent="parent-1", live=False)
    command = ("--profile", "alone", "agents", "tree", "parent-1", "--follow")
    following = at_a_terminal(home, *command)
    await asyncio.to_thread(following.expect, "33 agents in all")
    lines = str(following.before).splitlines()
    assert len(lines) < 24
    assert "more lines; without --follow all are shown" in lines[-1]
    following.sendintr()
    await asyncio.to_thread(following.read)
    following.close()


async def test_a_tree_on_a_terminal_is_shown_in_a_pager(home: Path) -> None:
    command = ("--profile", "alone", "agents", "tree", "parent-1")
    paged = at_a_terminal(home, *command, PAGER="sed s/^/paged:/")
    lines = (await asyncio.to_thread(shown, paged)).splitlines()
    assert [line.split()[0] for line in lines] == ["paged:a", "paged:", "paged:b", "paged:3"]


@pytest.mark.parametrize("option", [["--limit", "1"], ["--after", "a"], ["--json"]])
async def test_a_followed_tree_has_no_pages_and_no_end(home: Path, option: list[str]) -> None:
    refused = await tree(home, "parent-1", "--follow", *option)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--follow cannot be combined with --json, --limit or --after" in refused.stderr


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
    lines = (await run(home, "a", verb="show")).stdout.splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines if "label" in line] == ["helper\\x1b[2J"]
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
    (home / "sessions" / "aa" / "session.json").write_bytes(b"\xff")
    damaged = await run(home, "aa", verb="show")
    assert (damaged.returncode, "SESSION_DAMAGED" in damaged.stderr) == (1, True)
    assert "heald sessions delete aa" in damaged.stderr
    (home / "sessions" / "a" / "tail.jsonl").write_bytes(b"\xff")
    damaged = await run(home, "a", verb="show")
    assert (damaged.returncode, "SESSION_DAMAGED" in damaged.stderr) == (1, True)
    assert "heald sessions salvage a" in damaged.stderr


async def test_no_id_of_a_stranger_is_obeyed_by_the_terminal(
    home: Path, open_world: OpenWorld
) -> None:
    async with open_world() as world:
        await world.child("broken \x1b[2J", {"version": 3}, parent="parent-2", live=False)
        await world.child("below", ONE_SHOT, parent="broken \x1b[2J", live=False)
        await world.child("sibling", ONE_SHOT, parent="parent-2", live=False)
        await world.session("plain \x1b[2J", live=False)
    corrupt = await run(home, "broken", verb="show")
    assert corrupt.returncode == 1
    assert corrupt.stderr.startswith(r"broken \x1b[2J has no descriptor of its own")
    assert "`heald sessions show 'broken \\x1b[2J'`" in corrupt.stderr
    subagent = await run(home, "broken", verb="tree")
    assert subagent.stderr.startswith(r"broken \x1b[2J is itself a subagent of parent-2; ")
    assert "`heald agents show 'broken \\x1b[2J'`" in subagent.stderr
    assert (await run(home, r"broken \x1b[2J", verb="show")).stderr == corrupt.stderr
    ordinary = await run(home, "plain", verb="show")
    assert "`heald sessions show 'plain \\x1b[2J'`" in ordinary.stderr
    page = await tree(home, "parent-2", "--limit", "1")
    assert r"`--after 'broken \x1b[2J'`" in page.stdout
    rest = await tree(home, "parent-2", "--after", r"broken \x1b[2J")
    assert [line.split()[0] for line in rest.stdout.splitlines()] == ["below", "sibling", "3"]
