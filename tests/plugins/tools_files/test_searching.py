from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from heald import Cancelled, CancelToken
from heald_agent import ToolError
from heald_tools_files import searching

Call = Callable[..., Coroutine[Any, Any, str]]
Grow = Callable[..., None]
Tools = Callable[..., AbstractAsyncContextManager[Call]]


def matching(work: Path, pattern: str, glob: str = "*", flags: int = 0) -> list[str]:
    """Read every file whole, and say what grep must say."""
    found = [p for p in work.rglob("*") if p.is_file() and fnmatchcase(p.name, glob)]
    lines = []
    for path in sorted(found, key=lambda path: path.relative_to(work).parts):
        data = path.read_bytes()
        if b"\0" in data:
            continue
        text = data.decode().replace("\r\n", "\n")
        for number, line in enumerate(text.split("\n"), 1):
            if number == text.count("\n") + 1 and not line:
                continue
            if re.search(pattern, line, flags):
                lines.append(f"{path.relative_to(work)}:{number}:{line}")
    return lines


def matched(text: str) -> list[str]:
    return [line for line in text.split("\n") if not line.startswith("[")]


@pytest.mark.parametrize("seed", range(8))
async def test_what_is_found_is_what_reading_every_line_finds(
    call: Call, work: Path, grow: Grow, seed: int
) -> None:
    grow(work, seed, rules=False)
    for pattern in ("alpha", r"^\s*$", r"\w\d+$", "b.t"):
        found = matched(await call("grep", pattern=pattern, limit=1_000))
        assert found == matching(work, pattern)
    found = matched(await call("grep", pattern="ALPHA|ÜNÏ", ignore_case=True, glob="*.py"))
    assert found == matching(work, "ALPHA|ÜNÏ", "*.py", re.IGNORECASE)


async def test_the_context_of_matches_is_shown_once(call: Call, work: Path) -> None:
    (work / "a").write_text("".join(f"{n}\n" for n in range(1, 21)))
    text = await call("grep", pattern="^(3|5|12|20)$", path="a", context=2)
    shown = [("-" if f"a-{n}-{n}" in text.split("\n") else ":") + str(n) for n in range(1, 8)]
    assert shown == ["-1", "-2", ":3", "-4", ":5", "-6", "-7"]
    assert text.split("\n")[7:] == [
        "--",
        *("a-10-10", "a-11-11", "a:12:12", "a-13-13", "a-14-14"),
        "--",
        *("a-18-18", "a-19-19", "a:20:20"),
    ]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("def (", r"not a regular expression at position 4: .*unterminated subpattern"),
        ("a**", r"not a regular expression at position 2: multiple repeat"),
        ("a{99999999999999999999}", "not a regular expression"),
    ],
)
async def test_what_is_no_regular_expression_is_refused_with_its_place(
    call: Call, pattern: str, message: str
) -> None:
    with pytest.raises(ToolError, match=message):
        await call("grep", pattern=pattern)


async def test_an_expression_that_never_ends_is_stopped_and_keeps_what_was_found(
    file_tools: Tools, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_GRACE", 1.0)
    (work / "a").write_text("aaab\n" + "a" * 60 + "\n")
    async with file_tools({"search_s": 0.5}) as call:
        ticks = asyncio.create_task(_count_ticks())
        text = await call("grep", pattern="^(a+)+b$")
        ticks.cancel()
    assert text == ("a:1:aaab\n[stopped: the expression takes too long on one line; simplify it]")


async def _count_ticks() -> None:
    loop = asyncio.get_running_loop()
    last = loop.time()
    while True:
        await asyncio.sleep(0.01)
        assert loop.time() - last < 1, "the loop was blocked"
        last = loop.time()


async def test_a_cancelled_search_is_killed(call: Call, work: Path) -> None:
    (work / "a").write_text("a" * 60 + "\n")
    cancel = CancelToken()
    search = asyncio.create_task(call("grep", cancel, pattern="^(a+)+b$"))
    await asyncio.sleep(0)
    cancel.cancel("user")
    with pytest.raises(Cancelled):
        await search


async def test_a_search_whose_task_is_cancelled_is_killed(call: Call, work: Path) -> None:
    (work / "a").write_text("ab\n" + "a" * 60 + "\n")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await call("grep", pattern="^(a+)+b$")


async def test_a_search_stops_after_as_many_matches_as_asked_for(call: Call, work: Path) -> None:
    (work / "a").write_text("x\n" * 5)
    text = await call("grep", pattern="x", limit=3)
    assert matched(text) == ["a:1:x", "a:2:x", "a:3:x"]
    assert "[stopped after 3 matches; there are more" in text
    assert "[" not in await call("grep", pattern="x", limit=5)


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        (("MOST_ENTRIES", 5), "stopped after 5 files and directories, so there may be more"),
        (("MOST_BYTES", 2 << 20), "stopped after 2 MiB, so there may be more"),
        (("MOST_CHARACTERS", 300), "characters; there are more"),
    ],
)
async def test_a_search_stops_when_its_budget_is_spent(
    call: Call, work: Path, monkeypatch: pytest.MonkeyPatch, budget: tuple[str, int], told: str
) -> None:
    monkeypatch.setattr(searching, *budget)
    for n in range(10):
        (work / f"{n}").write_text("some text\n" * 5 + "x" * 500_000)
    assert told in await call("grep", pattern="text", limit=1_000)


async def test_a_long_line_is_shown_around_its_match(call: Call, work: Path) -> None:
    (work / "min.js").write_text("a" * 50_000 + "needle" + "b" * 50_000 + "\n")
    text = await call("grep", pattern="needle")
    assert text == f"min.js:1:...{'a' * 100}needle{'b' * 294}..."


async def test_a_huge_line_is_searched_in_its_beginning_and_that_is_told(
    call: Call, work: Path
) -> None:
    (work / "huge").write_text("a" * 3_000_000 + "needle\nneedle\n")
    assert await call("grep", pattern="needle") == (
        "huge:2:needle\n[1 lines were searched in their first million bytes only]"
    )


async def test_binary_files_and_links_are_left_out(call: Call, work: Path) -> None:
    (work / "binary").write_bytes(b"needle\0\n")
    (work / "text").write_text("needle\n")
    (work / "link").symlink_to("text")
    assert await call("grep", pattern="needle") == (
        "text:1:needle\n[1 binary files were not searched]"
    )
    assert await call("grep", pattern="needle", path="link") == "link:1:needle"


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file that fails while it is read")
async def test_files_that_cannot_be_read_are_counted(call: Call) -> None:
    text = await call("grep", pattern="x", path="/proc/self", glob="./mem")
    assert "[1 files or directories could not be read]" in text


async def test_other_encodings_are_searched_as_far_as_they_are_text(call: Call, work: Path) -> None:
    (work / "latin").write_bytes("naïve needle\n".encode("latin-1"))
    assert await call("grep", pattern="needle") == "latin:1:na\N{REPLACEMENT CHARACTER}ve needle"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "srx"}, "srx does not exist; did you mean src?"),
        ({"path": "image"}, "image is a binary file"),
        ({"glob": "/"}, "names at least one file"),
    ],
)
async def test_what_cannot_be_searched_is_said_plainly(
    call: Call, work: Path, arguments: dict[str, Any], message: str
) -> None:
    (work / "src").mkdir()
    (work / "image").write_bytes(b"\0\1")
    with pytest.raises(ToolError, match=message):
        await call("grep", pattern="x", **arguments)
