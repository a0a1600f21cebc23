from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from heald import Cancelled, CancelToken
from heald_agent import ToolError

Call = Callable[..., Coroutine[Any, Any, str]]


async def test_lines_come_with_their_numbers(call: Call, work: Path) -> None:
    (work / "a.txt").write_text("one\n\n  three\n")
    assert await call("read", path="a.txt") == "     1\tone\n     2\t\n     3\t  three"


async def test_a_part_says_which_lines_it_has_and_how_to_go_on(call: Call, work: Path) -> None:
    (work / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    part = await call("read", path="a.txt", offset=3, limit=2)
    assert part == ("     3\tline 3\n     4\tline 4\n[lines 3-4 of 10; go on with offset=5]")
    assert await call("read", path="a.txt", offset=9) == "     9\tline 9\n    10\tline 10"


async def test_a_long_file_is_read_in_parts_that_come_to_the_whole(call: Call, work: Path) -> None:
    wanted = [f"{n} {'x' * (n % 400)}" for n in range(1, 5_001)]
    (work / "long.txt").write_text("\n".join(wanted))
    got: list[str] = []
    offset: int | None = 1
    while offset is not None:
        part = await call("read", path="long.txt", offset=offset)
        assert len(part.encode()) < 260 * 1024
        rows = [line for line in part.split("\n") if "\t" in line]
        assert len(rows) <= 2_000
        got += [row.split("\t", 1)[1] for row in rows]
        on = re.search(r"of 5,000; go on with offset=(\d+)\]", part)
        offset = int(on[1]) if on else None
    assert got == wanted


async def test_more_lines_than_are_ever_shown_may_be_asked_for(call: Call, work: Path) -> None:
    (work / "a.txt").write_text("x\n" * 3_000)
    part = await call("read", path="a.txt", limit=10_000)
    assert part.endswith("[lines 1-2000 of 3,000; go on with offset=2001]")


async def test_a_huge_line_is_cut_and_says_so(call: Call, work: Path) -> None:
    (work / "min.js").write_text("a" * 3_000_000 + "\nafter\n")
    text = await call("read", path="min.js")
    first, second, note = text.split("\n")
    assert first == "     1\t" + "a" * 2_000 + "..."
    assert second == "     2\tafter"
    assert note.startswith("[1 of the lines are cut at 2,000 characters")


async def test_line_ends_are_told_and_not_shown(call: Call, work: Path) -> None:
    (work / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    (work / "mixed.txt").write_bytes(b"one\r\ntwo\n")
    (work / "none.txt").write_bytes(b"one\ntwo")
    assert await call("read", path="dos.txt") == "     1\tone\n     2\ttwo\n[lines end in CRLF]"
    assert (await call("read", path="mixed.txt")).endswith("[some lines end in CRLF]")
    assert (await call("read", path="none.txt")).endswith("two\n[the last line has no line end]")


async def test_bytes_that_are_not_utf8_are_replaced_and_told(call: Call, work: Path) -> None:
    (work / "latin.txt").write_bytes("naïve\n".encode("latin-1"))
    (work / "own.txt").write_text("a \N{REPLACEMENT CHARACTER} of its own\n")
    assert await call("read", path="latin.txt") == (
        "     1\tna\N{REPLACEMENT CHARACTER}ve\n"
        "[not UTF-8: bytes that are no text are shown as \N{REPLACEMENT CHARACTER}]"
    )
    assert "not UTF-8" not in await call("read", path="own.txt")


async def test_an_empty_file_is_said_to_be_empty(call: Call, work: Path) -> None:
    (work / "empty").touch()
    assert await call("read", path="empty") == "[the file is empty]"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("readme.md", "readme.md does not exist; did you mean README.md?"),
        ("REDME.md", "REDME.md does not exist; did you mean README.md?"),
        ("zzzzzzzz", "zzzzzzzz does not exist"),
        ("sorce/main.py", "sorce/main.py does not exist; did you mean source?"),
        ("source/man.py", "source/man.py does not exist; did you mean source/main.py?"),
        ("source", "source is a directory; glob lists the files in it"),
        ("README.md/x", "README.md/x goes through something that is not a directory"),
        ("image", "image is a binary file (6 bytes), not text"),
        ("circle", "circle is a symbolic link that leads in a circle"),
        ("pipe", "pipe is not a regular file, but a pipe, a socket or a device"),
        ("", "the path is empty; name a file or a directory"),
        ("a\0b", "'a\\x00b' is no path"),
        ("n" * 300, "n" * 300 + " cannot be used: File name too long"),
    ],
)
async def test_what_cannot_be_read_is_said_plainly(
    call: Call, work: Path, path: str, message: str
) -> None:
    (work / "README.md").write_text("x\n")
    (work / "source").mkdir()
    (work / "source" / "main.py").write_text("x\n")
    (work / "image").write_bytes(b"\x89P\0\1\2\3")
    (work / "circle").symlink_to("circle")
    os.mkfifo(work / "pipe")
    with pytest.raises(ToolError) as caught:
        await call("read", path=path)
    assert caught.value.reason == message


async def test_an_offset_past_the_end_is_refused(call: Call, work: Path) -> None:
    (work / "a").write_text("1\n2\n")
    (work / "empty").touch()
    with pytest.raises(ToolError, match="a has 2 lines; there is none at 3"):
        await call("read", path="a", offset=3)
    with pytest.raises(ToolError, match="empty has 0 lines; there is none at 2"):
        await call("read", path="empty", offset=2)


async def test_a_file_that_may_not_be_read_is_said_plainly(
    call: Call, public: Path, as_nobody: Callable[[], None]
) -> None:
    (public / "secret").write_text("x\n")
    (public / "secret").chmod(0)
    as_nobody()
    with pytest.raises(ToolError, match="secret cannot be used: permission denied"):
        await call("read", path=str(public / "secret"))


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file that fails while it is read")
async def test_a_file_that_fails_while_it_is_read_is_said_plainly(call: Call) -> None:
    with pytest.raises(ToolError, match="/proc/self/mem cannot be used"):
        await call("read", path="/proc/self/mem")


async def test_any_file_may_be_read_by_its_absolute_path(call: Call, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("here\n")
    assert "here" in await call("read", path=str(tmp_path / "outside.txt"))
    assert "here" in await call("read", path="../outside.txt")


async def test_a_cancelled_read_stops(call: Call, work: Path) -> None:
    (work / "a").write_text("1\n")
    cancel = CancelToken()
    cancel.cancel("user")
    with pytest.raises(Cancelled):
        await call("read", cancel, path="a")
