"""The tool `editor`: one tool to look at files and directories and to change files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from heald_agent import Tool, ToolContext, ToolError
from heald_tools_files.editing import EditArguments, edit_file
from heald_tools_files.inserting import InsertArguments, insert_lines
from heald_tools_files.listing import list_directory
from heald_tools_files.paths import locate
from heald_tools_files.reading import MOST_LINES, ReadArguments, read_file
from heald_tools_files.writing import WriteArguments, write_file

_Number = Annotated[int, msgspec.Meta(ge=1)]


class EditorArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `editor` is called with."""

    command: Annotated[
        Literal["view", "create", "replace", "insert"],
        msgspec.Meta(
            description="view: show a file's lines with their numbers, or what a directory holds. "
            "create: write a whole file, in place of what it held. replace: put `new` in the place "
            "of `old`. insert: put `content` after a line."
        ),
    ]
    path: Annotated[
        str,
        msgspec.Meta(
            description="The file or directory, relative to the working directory or absolute."
        ),
    ]
    content: Annotated[
        str | None,
        msgspec.Meta(description="create: all that the file is to hold. insert: whole lines."),
    ] = None
    old: Annotated[
        str | None,
        msgspec.Meta(
            description="replace: the text to replace, exactly as it is in the file, without line "
            "numbers; enough of it that it occurs only once."
        ),
    ] = None
    new: Annotated[
        str | None, msgspec.Meta(description="replace: the text to put in its place.")
    ] = None
    all: Annotated[
        bool | None, msgspec.Meta(description="replace: every occurrence, not the only one.")
    ] = None
    line: Annotated[
        Annotated[int, msgspec.Meta(ge=0)] | None,
        msgspec.Meta(description="insert: the line to insert after; 0 is the beginning."),
    ] = None
    offset: Annotated[
        _Number | None,
        msgspec.Meta(description="view: the first line or name to show, counted from 1."),
    ] = None
    limit: Annotated[
        _Number | None, msgspec.Meta(description="view: how many lines or names to show.")
    ] = None


_NEEDS: Mapping[str, tuple[str, ...]] = {
    "view": (),
    "create": ("content",),
    "replace": ("old", "new"),
    "insert": ("line", "content"),
}
_TAKES: Mapping[str, tuple[str, ...]] = {"view": ("offset", "limit"), "replace": ("all",)}
"""What a command may have beside what it needs."""


def editor_tool(*, outside: bool) -> Tool[EditorArguments]:
    """Make the tool; it changes files outside the session's directory only if that is allowed."""

    async def edit(arguments: EditorArguments, context: ToolContext) -> str:
        given = _given(arguments)
        return await asyncio.to_thread(_do, arguments.command, given, context, outside=outside)

    return Tool(
        name="editor",
        description=(
            "Look at files and directories, and create and change files. A long file or directory "
            "comes in parts; the end of a part says how to go on. In a file whose lines end in "
            "CRLF, write them with a plain newline."
        ),
        arguments=EditorArguments,
        run=edit,
    )


def _given(arguments: EditorArguments) -> dict[str, Any]:
    """Return the fields that were given; raises `ToolError` unless they are the command's."""
    command = arguments.command
    given = {n: v for n, v in msgspec.structs.asdict(arguments).items() if v is not None}
    del given["command"]
    needed = _NEEDS[command]
    if missing := [name for name in needed if name not in given]:
        raise ToolError(f"{command} needs {_fields(missing)}")
    known = ("path", *needed, *_TAKES.get(command, ()))
    if others := [name for name in given if name not in known]:
        raise ToolError(f"{command} does not take {_fields(others)}; leave that out")
    return given


def _fields(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _do(command: str, given: dict[str, Any], context: ToolContext, *, outside: bool) -> str:
    match command:
        case "create":
            return write_file(WriteArguments(**given), context, outside=outside)
        case "replace":
            return edit_file(EditArguments(**given), context, outside=outside)
        case "insert":
            return insert_lines(InsertArguments(**given), context, outside=outside)
    return _view(context, **given)


def _view(context: ToolContext, path: str, offset: int = 1, limit: int = MOST_LINES) -> str:
    place = locate(context.cwd, path)
    if os.path.isdir(place):  # noqa: PTH112 - False, not an error, behind a shut door
        return list_directory(place, context.cwd, offset, limit, context.cancel.check)
    return read_file(ReadArguments(path, offset, limit), context.cwd, context.cancel)
