"""One tool for files: what it does is what the tools it is made of do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald import Cancelled, CancelToken, Discovery, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_agent import ToolError, agents, tools
from heald_models_scripted import Call as Calls
from heald_models_scripted import Conversation, Reply, Script, scripts
from heald_session import ToolResult
from heald_tools_files import inserting
from heald_tools_files.inserting import inserted

Call = Callable[..., Coroutine[Any, Any, str]]
Tools = Callable[..., AbstractAsyncContextManager[Call]]
texts = st.text("ab\n", max_size=12)


@pytest.fixture
async def both(file_tools: Tools) -> AsyncIterator[Call]:
    """Call the editor, or the tools that do the same alone."""
    async with file_tools({"tools": ["read", "write", "edit", "editor"]}) as call:
        yield call


@pytest.fixture
async def editor(file_tools: Tools) -> AsyncIterator[Call]:
    async with file_tools({"tools": ["editor"]}) as call:

        async def edit(command: str, path: str, **given: Any) -> str:
            return await call("editor", command=command, path=path, **given)

        yield edit


async def test_it_does_what_the_tools_for_one_thing_do(both: Call, work: Path) -> None:
    written = await both("editor", command="create", path="new/a.txt", content="one\ntwo\n")
    assert written == "created new/a.txt (2 lines, 8 bytes)"
    for part in ({}, {"offset": 2}, {"limit": 1}):
        view = await both("editor", command="view", path="new/a.txt", **part)
        assert view == await both("read", path="new/a.txt", **part)
    done = await both("editor", command="replace", path="new/a.txt", old="two", new="2")
    assert done == "replaced 1 place in new/a.txt (from line 2)"
    assert (work / "new" / "a.txt").read_text() == "one\n2\n"
    done = await both("editor", command="replace", path="new/a.txt", old="\n", new=";", all=True)
    assert (work / "new" / "a.txt").read_text() == "one;2;"


async def test_lines_are_inserted_after_the_one_that_is_named(editor: Call, work: Path) -> None:
    (work / "a").write_text("one\nthree\n")
    assert await editor("insert", "a", line=1, content="two") == "inserted line 2 into a"
    assert await editor("insert", "a", line=0, content="-1\n0\n") == "inserted lines 1-2 into a"
    assert await editor("insert", "a", line=5, content="four\n") == "inserted line 6 into a"
    assert (work / "a").read_text() == "-1\n0\none\ntwo\nthree\nfour\n"
    with pytest.raises(ToolError, match="the file has 6 lines; there is none at 7"):
        await editor("insert", "a", line=7, content="x")
    with pytest.raises(ToolError, match="there is nothing to insert"):
        await editor("insert", "a", line=1, content="")


@pytest.mark.parametrize(
    ("before", "line", "after"),
    [
        (b"", 0, b"x\ny\n"),
        (b"a", 1, b"a\nx\ny\n"),
        (b"a", 0, b"x\ny\na"),
        (b"a\r\nb\r\n", 1, b"a\r\nx\r\ny\r\nb\r\n"),
        (b"a\r\nb", 2, b"a\r\nb\r\nx\r\ny\r\n"),
        (b"na\xefve\n", 0, b"x\ny\nna\xefve\n"),
    ],
)
async def test_the_file_is_otherwise_as_it_was(
    editor: Call, work: Path, before: bytes, line: int, after: bytes
) -> None:
    (work / "a").write_bytes(before)
    (work / "a").chmod(0o640)
    await editor("insert", "a", line=line, content="x\ny")
    assert (work / "a").read_bytes() == after
    assert (work / "a").stat().st_mode & 0o777 == 0o640


@given(texts, st.integers(0, 15), texts.filter(bool))
def test_an_insertion_leaves_every_line_that_was_there(text: str, line: int, new: str) -> None:
    lines = text.split("\n")
    count = len(lines) - (not lines[-1])
    if line > count:
        with pytest.raises(ToolError, match=f"the file has {count} lines"):
            inserted(text, line, new)
        return
    outcome = inserted(text, line, new)
    after = outcome.text.split("\n")
    assert after[:line] == lines[:line]
    assert after[line : outcome.last] == new.removesuffix("\n").split("\n")
    assert after[outcome.last :] == (lines[line:] if line < len(lines) else [""])


async def test_a_directory_is_shown_in_parts(editor: Call, work: Path) -> None:
    assert await editor("view", ".") == "[the directory is empty]"
    (work / "sub").mkdir()
    (work / "sub" / "deep").touch()
    for name in (".hidden", "b", "a\nb", "[c]"):
        (work / name).touch()
    (work / "link").symlink_to("sub")
    (work / "broken").symlink_to("nowhere")
    odd = "a\N{REPLACEMENT CHARACTER}b"
    names = [".hidden", "./[c]", odd, "b", "broken", "link/", "sub/"]
    assert (await editor("view", ".")).split("\n") == names
    assert await editor("view", str(work / "sub")) == "deep"
    part = await editor("view", ".", limit=2)
    assert part.split("\n") == [*names[:2], "[names 1-2 of 7; go on with offset=3]"]
    part = await editor("view", ".", offset=7, limit=9)
    assert part.split("\n") == ["sub/", "[names 7-7 of 7]"]
    with pytest.raises(ToolError, match="holds 7 names; there is none at 8"):
        await editor("view", ".", offset=8)


async def test_a_directory_with_very_many_names_is_bounded(editor: Call, work: Path) -> None:
    for number in range(1_200):
        (work / f"{number:04}").touch()
    shown = (await editor("view", ".", limit=5_000)).split("\n")
    assert shown[-2:] == ["0999", "[names 1-1000 of 1,200; go on with offset=1001]"]


@pytest.mark.parametrize(
    ("command", "given", "message"),
    [
        ("create", {}, "create needs `content`"),
        ("replace", {"content": "x"}, "replace needs `old` and `new`"),
        ("replace", {"old": "x", "new": "y", "line": 3}, "replace does not take `line`"),
        ("insert", {"content": "x"}, "insert needs `line`"),
        ("view", {"content": "x"}, "view does not take `content`; leave that out"),
        ("replace", {"old": "", "new": "y"}, "the text to replace is empty"),
        ("replace", {"old": "here", "new": "here"}, "nothing would change"),
        ("replace", {"old": "gone", "new": "y"}, "does not occur"),
        ("insert", {"line": 0, "content": "\ud800"}, "content is not Unicode text"),
    ],
)
async def test_what_does_not_fit_a_command_is_said_and_changes_nothing(
    editor: Call, work: Path, command: str, given: dict[str, Any], message: str
) -> None:
    (work / "a").write_text("here\n")
    with pytest.raises(ToolError, match=message):
        await editor(command, "a", **given)
    assert (work / "a").read_text() == "here\n"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"command": "delete", "path": "a"}, "Invalid enum value 'delete'"),
        ({"command": "view"}, "missing required field `path`"),
        ({"command": "insert", "path": "a", "line": -1, "content": "x"}, ">= 0"),
        ({"command": "view", "path": "a", "lines": 3}, "unknown field `lines`"),
    ],
)
async def test_its_schema_refuses_the_rest(
    both: Call, written: dict[str, Any], message: str
) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        await both("editor", **written)


async def test_it_stays_in_its_directory_unless_it_may_leave(file_tools: Tools, work: Path) -> None:
    (work.parent / "out").write_text("x\n")
    changes: list[dict[str, Any]] = [
        {"command": "create", "content": "y"},
        {"command": "replace", "old": "x", "new": "y"},
        {"command": "insert", "line": 0, "content": "y"},
    ]
    async with file_tools({"tools": ["editor"]}) as call:
        for change in changes:
            with pytest.raises(ToolError, match="is outside"):
                await call("editor", path="../out", **change)
        assert await call("editor", command="view", path="../out") == "     1\tx"
    async with file_tools({"tools": ["editor"], "write_outside": True}) as call:
        await call("editor", path="../out", **changes[2])
    assert (work.parent / "out").read_text() == "y\nx\n"


async def test_a_file_changed_by_somebody_else_meanwhile_is_left_alone(
    editor: Call, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "a").write_text("mine\n")
    real = inserting.inserted

    def meanwhile(text: str, line: int, new: str) -> inserting.Inserted:
        (work / "a").write_text("theirs\n")
        return real(text, line, new)

    monkeypatch.setattr(inserting, "inserted", meanwhile)
    with pytest.raises(ToolError, match="changed by somebody else; read it again"):
        await editor("insert", "a", line=0, content="x")
    assert (work / "a").read_text() == "theirs\n"


@pytest.mark.parametrize("path", [".", "a"])
async def test_one_that_is_cancelled_stops(both: Call, work: Path, path: str) -> None:
    (work / "a").write_text("x\n")
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        await both("editor", cancel, command="view", path=path)


async def test_an_agent_has_it_only_where_a_row_names_it(heald_host: HostFactory) -> None:
    rows = [Row("files", "tools-files", {"tools": ["editor"]})]
    async with heald_host(rows=rows) as host:
        (tool,) = (found.value for found in host.scope.collect(tools))
    assert (tool.name, tool.changes, tool.parallel) == ("editor", True, False)


PERSONA = "You mend what is broken."
PRESET = f"""
[[rows]]
id = "persona"
plugin = "persona"
config = {{ text = "{PERSONA}" }}
[[rows]]
id = "shell"
plugin = "tools-shell"
[[rows]]
id = "files"
plugin = "tools-files"
config = {{ tools = ["editor"] }}
"""


def play(conversation: Conversation) -> Reply:
    """Leave one's name in a shell and a file, then look at both."""
    name, calls = conversation.prompt, conversation.step
    made = [
        Calls(tool="shell", arguments={"command": f"WHO=${{WHO}}{name}"}),
        Calls(tool="editor", arguments={"command": "create", "path": name, "content": name}),
        Calls(tool="shell", arguments={"command": f"echo $WHO $$; cat {name}"}),
    ]
    return Reply(calls=(made[calls],)) if calls < len(made) else Reply(text="done")


async def test_two_agents_on_one_small_preset_have_a_shell_each_and_nothing_else(
    heald_host: HostFactory, heald_home: Path, work: Path
) -> None:
    folder = heald_home / "presets" / "small"
    folder.mkdir(parents=True)
    (folder / "preset.toml").write_text(PRESET)

    class Scripts(Plugin[NoConfig]):
        @implements(scripts)
        def give(self) -> Iterable[Script]:
            return [Script("names", play)]

    plugins = ["session", "preset", "agent", "models-scripted", "scripts"]
    rows = [Row(plugin, plugin) for plugin in plugins]
    async with heald_host(rows=rows, discovery=Discovery(program={"scripts": Scripts})) as host:
        create = host.scope.require(agents).create
        pair = [await create(cwd=work, preset="small", model="scripted:names") for _ in range(2)]
        assert len({agent.session.scope.composition for agent in pair}) == 1
        pids = set()
        for agent, name in zip(pair, ("ann", "bob"), strict=True):
            await agent.send(name)
            await agent.settled()
            context = agent.session.context()
            assert context is not None
            assert context.system == PERSONA
            assert [tool.name for tool in context.tools] == ["shell", "editor"]
            last = [m for m in agent.session.history() if isinstance(m, ToolResult)][-1]
            who, pid, *_ = last.text.split()
            assert who == name
            pids.add(pid)
            assert name in last.text.split("\n")[1]
        assert len(pids) == 2
        await pair[0].dispose()
        await pair[1].send("bob")
        await pair[1].settled()
        last = [m for m in pair[1].session.history() if isinstance(m, ToolResult)][-1]
        assert last.text.startswith("bobbob ")
