"""`heald agents` on what it cannot read: it says which, and what to do."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
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
ROWS = ("session", "persistence", "projection", "projection-cache", "query", "subagent")
PROFILE = "".join(f'[[rows]]\nid = "{name}"\nplugin = "{name}"\n' for name in ROWS)
UNABLE = "-dac_override,-dac_read_search"
"""What lets the superuser read what nobody may."""


@pytest.fixture
async def home(open_world: OpenWorld, heald_home: Path) -> Path:
    """Store a parent with the children a, b and big, of which big's descriptor is no descriptor."""
    profile = heald_home / "profiles" / "alone" / "heald.toml"
    profile.parent.mkdir(parents=True)
    profile.write_text(PROFILE)
    async with open_world() as world:
        await world.session("parent", live=False)
        await world.child("a", ONE_SHOT, live=False, created_at=1)
        await world.child("b", ONE_SHOT, live=False, created_at=2)
        huge = ONE_SHOT | {"label": "x" * 10_000_000}
        await world.child("big", huge, live=False, created_at=3)
    return heald_home


def limited() -> Sequence[str]:
    """Return what runs a command as somebody whom permissions hold for."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("the superuser may read everything")
    return ("setpriv", f"--bounding-set={UNABLE}", f"--inh-caps={UNABLE}")


async def run(home: Path, *arguments: str, before: Sequence[str] = ()) -> CompletedProcess[str]:
    command = [*before, sys.executable, "-m", "heald", "--home", str(home), "--profile", "alone"]
    return await asyncio.to_thread(
        subprocess.run,
        [*command, "agents", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


async def told(home: Path, *, said: str = "", before: Sequence[str] = ()) -> dict[str, str]:
    result = await run(home, "list", "parent", "--json", before=before)
    assert (result.returncode, result.stderr) == (0, said)
    return told_in(result.stdout)


def told_in(stdout: str) -> dict[str, str]:
    return {row["id"]: row.get("mode") or row["reason"] for row in json.loads(stdout)}


async def test_a_descriptor_of_ten_megabytes_is_listed_and_shown_as_corrupt(home: Path) -> None:
    assert await told(home) == {"a": "one-shot", "b": "one-shot", "big": "corrupt"}
    shown = await run(home, "show", "big")
    assert (shown.returncode, len(shown.stdout) < 1000) == (1, True)
    assert "big has no descriptor of its own that can be read" in shown.stderr
    assert "heald sessions show big" in shown.stderr


@pytest.mark.parametrize("verb", ["list", "tree", "show"])
async def test_what_cannot_be_an_id_is_told_apart_from_one_that_nobody_has(
    home: Path, verb: str
) -> None:
    empty = await run(home, verb, "")
    assert empty.returncode == 1
    assert empty.stderr.startswith("heald: SESSION_ID_INVALID: '' cannot be a session id")
    long = await run(home, verb, "x" * 301)
    assert (long.returncode, "SESSION_ID_INVALID" in long.stderr) == (1, True)
    for refused in (empty, long):
        assert "see `heald sessions list`" in refused.stderr
    absent = await run(home, verb, "../par\x1b[2J")
    assert (absent.returncode, "SESSION_NOT_FOUND" in absent.stderr) == (1, True)
    assert "\x1b" not in absent.stderr


async def test_a_session_that_cannot_be_read_itself_is_named_and_its_subagents_shown(
    home: Path,
) -> None:
    (home / "sessions" / "parent" / "session.json").write_text("{")
    for verb in ("list", "tree"):
        result = await run(home, verb, "parent")
        assert result.returncode == 0
        assert result.stderr.startswith("parent itself cannot be read (session.json: ")
        assert "heald sessions verify parent" in result.stderr
        assert [line.split()[0] for line in result.stdout.splitlines()][-3:-1] in (
            ["a", "b"],
            ["b", "big"],
        )


async def test_a_directory_without_permission_hides_one_child_and_the_verb_says_why(
    home: Path,
) -> None:
    before = limited()
    place = home / "sessions" / "a"
    place.chmod(0)
    try:
        said = (
            "1 session could not be read and may be missing here; "
            "`heald sessions list --all` says which\n"
        )
        found = await told(home, said=said, before=before)
        assert found == {"b": "one-shot", "big": "corrupt"}
        shown = await run(home, "show", "a", before=before)
        assert shown.returncode == 1
        assert "Permission denied" in shown.stderr
        listed = await run(home, "list", "a", before=before)
        assert (listed.returncode, listed.stdout) == (0, "No subagents.\n")
        assert "a itself cannot be read" in listed.stderr
        assert "Permission denied" in listed.stderr
    finally:
        place.chmod(0o700)
    assert await told(home) == {"a": "one-shot", "b": "one-shot", "big": "corrupt"}


async def test_a_log_without_permission_is_unavailable_until_it_can_be_read(home: Path) -> None:
    before = limited()
    shutil.rmtree(home / "cache")
    tail = home / "sessions" / "a" / "tail.jsonl"
    tail.chmod(0)
    try:
        assert await told(home, before=before) == {
            "a": "unavailable",
            "b": "one-shot",
            "big": "corrupt",
        }
        shown = await run(home, "show", "a", before=before)
        assert (shown.returncode, "Permission denied" in shown.stderr) == (1, True)
    finally:
        tail.chmod(0o600)
    assert (await told(home))["a"] == "one-shot"


async def test_sessions_without_permission_altogether_are_refused_with_what_to_do(
    home: Path,
) -> None:
    before = limited()
    (home / "sessions").chmod(0)
    try:
        result = await run(home, "list", "parent", before=before)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.startswith("heald: STORAGE_UNAVAILABLE")
        assert "Permission denied; mend it" in result.stderr
    finally:
        (home / "sessions").chmod(0o700)


async def test_a_corpus_that_changes_while_it_is_listed_never_fails_the_verb(
    home: Path, open_world: OpenWorld
) -> None:
    changing = True

    async def change() -> None:
        number = 0
        async with open_world() as world:
            while changing:
                number += 1
                await world.child(f"n{number}", ONE_SHOT, live=False)
                shutil.rmtree(home / "sessions" / f"n{number - 1}", ignore_errors=True)

    changes = asyncio.create_task(change())
    try:
        for arguments in ((), ("--descendants",)):
            listed = await run(home, "list", "parent", "--json", *arguments)
            assert listed.returncode == 0
            rows = told_in(listed.stdout)
            assert {"a": "one-shot", "b": "one-shot", "big": "corrupt"}.items() <= rows.items()
            assert set(rows.values()) <= {"one-shot", "corrupt", "unavailable"}
    finally:
        changing = False
        await changes


@pytest.mark.parametrize("verb", ["list", "tree"])
async def test_a_cache_without_permission_is_passed_over(home: Path, verb: str) -> None:
    before = await run(home, verb, "parent")
    (home / "cache").chmod(0)
    try:
        result = await run(home, verb, "parent", before=limited())
    finally:
        (home / "cache").chmod(0o700)
    assert result.returncode == 0
    assert "Traceback" not in result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()] == [
        line.split()[0] for line in before.stdout.splitlines()
    ]
