from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from heald import Cancelled, CancelToken
from heald_agent import ToolError
from heald_tools_files import finding
from heald_tools_files.tree import Budget, Walk

Call = Callable[..., Coroutine[Any, Any, str]]
Grow = Callable[..., None]
Tools = Callable[..., AbstractAsyncContextManager[Call]]
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is the oracle")


def files(work: Path) -> list[str]:
    found = [path.relative_to(work) for path in work.rglob("*") if path.is_file()]
    return ["/".join(path.parts) for path in sorted(found, key=lambda path: path.parts)]


def not_ignored(work: Path) -> list[str]:
    git = ["git", "-C", str(work)]
    subprocess.run([*git, "init", "-q"], check=True)
    asked = [*git, "ls-files", "-z", "--others", "--exclude-standard"]
    said = subprocess.run(asked, check=True, capture_output=True).stdout.decode()
    return sorted((path for path in said.split("\0") if path), key=lambda path: path.split("/"))


def listed(text: str) -> list[str]:
    return [line for line in text.split("\n") if not line.startswith("[")]


@pytest.mark.parametrize("seed", range(25))
async def test_what_is_found_is_what_a_look_at_every_file_finds(
    call: Call, work: Path, grow: Grow, seed: int
) -> None:
    grow(work, seed, rules=False)
    everything = files(work)
    for pattern in ("*.py", "*", "?", "src", ".*"):
        wanted = [path for path in everything if fnmatchcase(path.split("/")[-1], pattern)]
        assert listed(await call("glob", pattern=pattern, limit=1_000)) == wanted
    wanted = [path for path in everything if path.startswith("src/") and path.endswith(".py")]
    assert listed(await call("glob", pattern="src/**/*.py", limit=1_000)) == wanted


@needs_git
@pytest.mark.parametrize("seed", range(25))
async def test_what_is_left_out_is_what_git_ignores(
    call: Call, work: Path, grow: Grow, seed: int
) -> None:
    grow(work, seed)
    wanted = not_ignored(work)
    assert listed(await call("glob", pattern="*", limit=1_000)) == wanted
    for name in {path.split("/")[0] for path in wanted if "/" in path}:
        beneath = [path for path in wanted if path.startswith(f"{name}/")]
        assert listed(await call("glob", pattern="*", path=name)) == beneath


async def test_an_ignored_directory_that_is_named_is_searched(call: Call, work: Path) -> None:
    (work / ".git").mkdir()
    (work / ".gitignore").write_text("node_modules/\n")
    (work / "node_modules" / "left").mkdir(parents=True)
    (work / "node_modules" / "left" / "pad.js").touch()
    assert await call("glob", pattern="*.js") == "[no file fits the pattern]"
    assert await call("glob", pattern="*", path="node_modules") == "node_modules/left/pad.js"


async def test_rules_of_no_work_tree_apply_beneath_their_directory(call: Call, work: Path) -> None:
    (work / "in").mkdir()
    (work / ".gitignore").write_text("*.log\n")
    (work / "in" / "a.log").touch()
    assert await call("glob", pattern="*.log") == "[no file fits the pattern]"


async def test_lines_that_are_no_rules_are_passed_over(call: Call, work: Path) -> None:
    (work / ".gitignore").write_bytes(b"!\n*.log\r\n\xff\xfe\n[z\n")
    (work / "a.log").touch()
    (work / "b.txt").touch()
    assert listed(await call("glob", pattern="*")) == [".gitignore", "b.txt"]


async def test_links_are_listed_and_not_followed(call: Call, work: Path) -> None:
    (work / "real").mkdir()
    (work / "real" / "a.py").touch()
    (work / "real" / "loop").symlink_to(work)
    (work / "circle").symlink_to("circle")
    (work / "to_file.py").symlink_to("real/a.py")
    (work / "to_nothing.py").symlink_to("nothing")
    assert listed(await call("glob", pattern="*")) == ["real/a.py", "to_file.py"]


async def test_an_empty_directory_has_no_file_that_fits(call: Call) -> None:
    assert await call("glob", pattern="*") == "[no file fits the pattern]"


async def test_more_paths_than_asked_for_are_told(call: Call, work: Path) -> None:
    for n in range(5):
        (work / f"{n}.txt").touch()
    text = await call("glob", pattern="*.txt", limit=3)
    assert text.split("\n") == [
        "0.txt",
        "1.txt",
        "2.txt",
        "[there are more than these 3; narrow the pattern or the path]",
    ]
    assert "[" not in await call("glob", pattern="*.txt", limit=5)


async def test_a_very_large_tree_is_looked_at_in_part_and_that_is_told(
    call: Call, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "MOST_ENTRIES", 30)
    for n in range(20):
        (work / f"d{n:02}").mkdir()
        (work / f"d{n:02}" / "a.py").touch()
    *found, note = (await call("glob", pattern="*.py")).split("\n")
    assert found == [f"d{n:02}/a.py" for n in range(10)]
    assert note == "[stopped after 30 files and directories, so there may be more; narrow the path]"


async def test_a_search_that_takes_too_long_says_so(file_tools: Tools, work: Path) -> None:
    for n in range(600):
        (work / f"{n}").touch()
    async with file_tools({"search_s": 1e-9}) as call:
        assert "[stopped after 1e-09 seconds" in await call("glob", pattern="*.py")


async def test_a_cancelled_search_stops(call: Call, work: Path) -> None:
    for n in range(600):
        (work / f"{n}").touch()
    cancel = CancelToken()
    cancel.cancel("user")
    with pytest.raises(Cancelled):
        await call("glob", cancel, pattern="*")


async def test_directories_that_may_not_be_read_are_counted(
    call: Call, public: Path, as_nobody: Callable[[], None]
) -> None:
    (public / "open").mkdir()
    (public / "open" / "a").touch()
    (public / "shut").mkdir(mode=0)
    as_nobody()
    text = await call("glob", pattern="*", path=str(public))
    assert text == f"{public}/open/a\n[1 directories could not be read]"
    with pytest.raises(ToolError, match="shut cannot be used: permission denied"):
        await call("glob", pattern="*", path=str(public / "shut"))


@pytest.mark.parametrize("pattern", ["{work}/**/*.py", "../work/in/*.py"])
async def test_a_pattern_may_begin_elsewhere(call: Call, work: Path, pattern: str) -> None:
    (work / "in").mkdir()
    (work / "in" / "a.py").touch()
    assert (await call("glob", pattern=pattern.format(work=work))).endswith("in/a.py")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": "/"}, "names at least one file"),
        ({"pattern": "*", "path": "srx"}, "srx does not exist; did you mean src?"),
        ({"pattern": "*", "path": "file"}, "goes through something that is not a directory"),
    ],
)
async def test_what_cannot_be_searched_is_said_plainly(
    call: Call, work: Path, arguments: dict[str, str], message: str
) -> None:
    (work / "src").mkdir()
    (work / "file").touch()
    with pytest.raises(ToolError, match=message):
        await call("glob", **arguments)


async def test_names_that_no_log_could_hold_are_shown_with_marks(call: Call, work: Path) -> None:
    (work / os.fsdecode(b"\xff\n.py")).touch()
    assert await call("glob", pattern="*.py") == "\N{REPLACEMENT CHARACTER}" * 2 + ".py"


def test_a_tree_deeper_than_any_stack_is_walked(tmp_path: Path) -> None:
    deepest = tmp_path
    for _ in range(1_500):
        deepest /= "d"
        deepest.mkdir()
    (deepest / "a").touch()
    try:
        (entry,) = Walk(tmp_path, Budget(10_000, 60, int)).files(bool)
        assert len(entry.names) == 1_501
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)
