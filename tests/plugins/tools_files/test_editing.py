from __future__ import annotations

import stat
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald import Cancelled, CancelToken
from heald_agent import ToolError
from heald_tools_files import editing
from heald_tools_files.editing import replaced

Call = Callable[..., Coroutine[Any, Any, str]]
Tools = Callable[..., AbstractAsyncContextManager[Call]]

texts = st.text("ab \n", max_size=12)
dos_texts = st.text("ab\r\n", max_size=8)
pieces = st.text("ab \n", min_size=1, max_size=3)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def places(text: str, old: str) -> list[int]:
    return [n for n in range(len(text)) if text.startswith(old, n)]


@given(texts, pieces, texts)
def test_one_place_is_replaced_exactly_or_nothing_is(text: str, old: str, new: str) -> None:
    found = places(text, old)
    if len(found) == 1:
        (at,) = found
        changed = replaced(text, old, new, every=False)
        assert changed.text == text[:at] + new + text[at + len(old) :]
        assert changed.lines == (text[:at].count("\n") + 1,)
    else:
        with pytest.raises(ToolError) as caught:
            replaced(text, old, new, every=False)
        wanted = f"occurs {len(found)} times" if found else "does not occur"
        assert wanted in caught.value.reason


@given(texts, pieces, texts, texts)
def test_every_place_is_replaced_from_left_to_right(
    before: str, old: str, after: str, new: str
) -> None:
    text = before + old + after
    changed = replaced(text, old, new, every=True)
    assert changed.text == text.replace(old, new)
    assert changed.count == text.count(old)


@given(texts, pieces, texts, texts)
def test_an_edit_does_the_same_whatever_lines_end_in(
    before: str, old: str, after: str, new: str
) -> None:
    text = f"{before}{old}{after}\n"
    plain = replaced(text, old, new, every=True)
    dos = replaced(text.replace("\n", "\r\n"), old, new, every=True)
    assert dos.text == plain.text.replace("\n", "\r\n")
    assert (dos.count, dos.lines) == (plain.count, plain.lines)


@given(dos_texts, dos_texts.map(lambda text: text + "\r"), dos_texts, texts)
def test_a_carriage_return_in_the_old_text_makes_it_exact(
    before: str, old: str, after: str, new: str
) -> None:
    text = before + old + after
    assert replaced(text, old, new, every=True).text == text.replace(old, new)


async def test_an_edit_says_what_it_did(call: Call, work: Path) -> None:
    (work / "a.py").write_text("one\ntwo\nthree\ntwo\n")
    assert await call("edit", path="a.py", old="three", new="3") == (
        "replaced 1 place in a.py (from line 3)"
    )
    assert await call("edit", path="a.py", old="two", new="2", all=True) == (
        "replaced 2 places in a.py (from line 2, 4)"
    )
    assert (work / "a.py").read_text() == "one\n2\n3\n2\n"


async def test_an_ambiguous_edit_says_how_often_and_where_and_changes_nothing(
    call: Call, work: Path
) -> None:
    (work / "a").write_text("x\ny\nx\n")
    with pytest.raises(ToolError, match=r"occurs 2 times \(on lines 1, 3\)"):
        await call("edit", path="a", old="x", new="z")
    assert (work / "a").read_text() == "x\ny\nx\n"


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        ("no such text", "read the file again"),
        ("     1\tdef f():", "leave out the line numbers"),
        ("def f():\nreturn 1", "line 1 differs from it in white space only"),
    ],
)
async def test_a_text_that_does_not_occur_is_explained(
    call: Call, work: Path, old: str, hint: str
) -> None:
    (work / "a.py").write_text("def f():\n    return 1\n")
    with pytest.raises(ToolError, match=hint):
        await call("edit", path="a.py", old=old, new="x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "a", "old": "", "new": "x"}, "the text to replace is empty"),
        ({"path": "a", "old": "x", "new": "x"}, "the same text"),
        ({"path": "a", "old": "x", "new": "\ud800"}, "new is not Unicode text"),
        ({"path": "b", "old": "x", "new": "y"}, "b does not exist"),
        ({"path": "binary", "old": "x", "new": "y"}, "binary is a binary file"),
        ({"path": ".", "old": "x", "new": "y"}, "is a directory"),
        ({"path": "../out", "old": "x", "new": "y"}, "write only beneath that directory"),
    ],
)
async def test_what_cannot_be_edited_is_said_plainly(
    call: Call, work: Path, arguments: dict[str, str], message: str
) -> None:
    (work / "a").write_text("x\n")
    (work / "binary").write_bytes(b"x\0")
    (work.parent / "out").write_text("x\n")
    with pytest.raises(ToolError, match=message):
        await call("edit", **arguments)


async def test_a_file_too_large_to_hold_is_refused(
    call: Call, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editing, "MOST_BYTES", 10)
    (work / "a").write_text("x" * 11)
    with pytest.raises(ToolError, match=r"a is too large to edit \(11 bytes\)"):
        await call("edit", path="a", old="x", new="y", all=True)


async def test_bytes_that_are_not_utf8_and_the_mode_stay(call: Call, work: Path) -> None:
    (work / "run.sh").write_bytes(b"# na\xefve\r\necho one\r\n")
    (work / "run.sh").chmod(0o750)
    await call("edit", path="run.sh", old="echo one\n", new="echo one\necho two\n")
    assert (work / "run.sh").read_bytes() == b"# na\xefve\r\necho one\r\necho two\r\n"
    assert stat.S_IMODE((work / "run.sh").stat().st_mode) == 0o750
    assert names(work) == ["run.sh"]


async def test_a_file_changed_by_somebody_else_meanwhile_is_left_alone(
    call: Call, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "a").write_text("x\n")
    real = editing.replaced

    def meanwhile(*args: str, every: bool) -> editing.Replaced:
        (work / "a").write_text("x and more\n")
        return real(*args, every=every)

    monkeypatch.setattr(editing, "replaced", meanwhile)
    with pytest.raises(ToolError, match="a was changed by somebody else; read it again"):
        await call("edit", path="a", old="x", new="y")
    assert (work / "a").read_text() == "x and more\n"


async def test_a_file_is_written_with_the_directories_above_it(call: Call, work: Path) -> None:
    assert await call("write", path="in/deep/a.txt", content="one\ntwo\n") == (
        "created in/deep/a.txt (2 lines, 8 bytes)"
    )
    assert (work / "in/deep/a.txt").read_text() == "one\ntwo\n"
    assert await call("write", path="in/deep/a.txt", content="") == (
        "replaced in/deep/a.txt (0 lines, 0 bytes)"
    )
    assert names(work / "in/deep") == ["a.txt"]


async def test_what_is_written_is_there_byte_for_byte(call: Call, work: Path) -> None:
    await call("write", path="a", content="ü\r\nno end")
    assert (work / "a").read_bytes() == "ü\r\nno end".encode()


async def test_a_new_file_has_the_mode_that_new_files_have(call: Call, work: Path) -> None:
    (work / "touched").touch()
    await call("write", path="written", content="x")
    assert (work / "written").stat().st_mode == (work / "touched").stat().st_mode


async def test_a_replaced_file_keeps_its_mode_and_a_link_to_it_stays_one(
    call: Call, work: Path
) -> None:
    (work / "real").write_text("old")
    (work / "real").chmod(0o640)
    (work / "link").symlink_to("real")
    await call("write", path="link", content="new")
    assert (work / "link").is_symlink()
    assert (work / "real").read_text() == "new"
    assert stat.S_IMODE((work / "real").stat().st_mode) == 0o640


@pytest.mark.parametrize("path", ["../out", "{parent}/out", "link/out", "file", "x/../../out"])
async def test_nothing_is_written_outside_the_directory(call: Call, work: Path, path: str) -> None:
    (work / "link").symlink_to(work.parent)
    (work / "file").symlink_to(work.parent / "out")
    with pytest.raises(ToolError, match="write only beneath that directory"):
        await call("write", path=path.format(parent=work.parent), content="x")
    assert not (work.parent / "out").exists()


async def test_writing_outside_can_be_allowed(file_tools: Tools, work: Path) -> None:
    async with file_tools({"write_outside": True}) as call:
        await call("write", path="../out", content="x")
        await call("edit", path="../out", old="x", new="y")
    assert (work.parent / "out").read_text() == "y"


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("directory", "x", "directory is not a file"),
        (".", "x", "is not a file"),
        ("file/x", "x", "file/x goes through something that is not a directory"),
        ("circle", "x", "leads in a circle"),
        ("a", "\ud800", "content is not Unicode text"),
        ("n" * 300, "x", "File name too long"),
    ],
)
async def test_what_cannot_be_written_is_said_plainly(
    call: Call, work: Path, path: str, content: str, message: str
) -> None:
    (work / "directory").mkdir()
    (work / "file").write_text("as it was")
    (work / "circle").symlink_to("circle")
    before = names(work)
    with pytest.raises(ToolError, match=message):
        await call("write", path=path, content=content)
    assert names(work) == before
    assert (work / "file").read_text() == "as it was"


async def test_a_place_that_may_not_be_written_is_left_as_it_was(
    file_tools: Tools, public: Path, as_nobody: Callable[[], None]
) -> None:
    (public / "a").write_text("old")
    (public / "a").chmod(0o444)
    async with file_tools({"write_outside": True}) as call:
        as_nobody()
        with pytest.raises(ToolError, match="a cannot be used: permission denied"):
            await call("write", path=str(public / "a"), content="new")
        with pytest.raises(ToolError, match="b cannot be used: permission denied"):
            await call("write", path=str(public / "b"), content="new")
    assert names(public) == ["a"]
    assert (public / "a").read_text() == "old"


async def test_a_cancelled_write_writes_nothing(call: Call, work: Path) -> None:
    cancel = CancelToken()
    cancel.cancel("user")
    with pytest.raises(Cancelled):
        await call("write", cancel, path="a", content="x")
    assert names(work) == []
