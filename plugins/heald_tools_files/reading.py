"""The tool `read`: numbered lines of a text file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import attrs
import msgspec

from heald import CancelToken
from heald_agent import Tool, ToolContext, ToolError
from heald_tools_files.lines import Line, lines
from heald_tools_files.names import shown
from heald_tools_files.paths import locate, opened

MOST_LINES = 2_000
MOST_BYTES = 256 * 1024
LONGEST_LINE = 2_000
"""Characters of one line that are shown."""
_MOST_COUNTED = 64 * 1024 * 1024
"""Bytes after the last line shown in which the rest of the lines are counted."""
_WIDEST = 4
"""Bytes of one character."""


class ReadArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `read` is called with."""

    path: Annotated[
        str, msgspec.Meta(description="The file, relative to the working directory or absolute.")
    ]
    offset: Annotated[
        int, msgspec.Meta(ge=1, description="The first line to read, counted from 1.")
    ] = 1
    limit: Annotated[
        int, msgspec.Meta(ge=1, description=f"How many lines to read, at most {MOST_LINES:,}.")
    ] = MOST_LINES


@attrs.define
class _Page:
    """The lines that are shown, and what must be said about them."""

    first: int
    shown: list[str] = attrs.field(factory=list)
    size: int = 0
    clipped: int = 0
    undecodable: bool = False
    ends: set[bytes] = attrs.field(factory=set)
    more: str = ""

    @property
    def last(self) -> int:
        return self.first + len(self.shown) - 1

    def add(self, line: Line) -> bool:
        """Take a line in, unless there is no room."""
        text = line.kept.decode("utf-8", "replace")
        clipped = len(text) > LONGEST_LINE
        text = text[:LONGEST_LINE]
        numbered = f"{self.last + 1:>6}\t{text}{'...' if clipped else ''}"
        size = self.size + len(numbered.encode()) + 1
        if size > MOST_BYTES:
            return False
        self.size = size
        self.clipped += clipped
        replaced = "\N{REPLACEMENT CHARACTER}"
        self.undecodable |= replaced in text and replaced.encode() not in line.kept
        self.ends.add(line.end)
        self.shown.append(numbered)
        return True

    def notes(self) -> Iterator[str]:
        if self.more:
            part = f"lines {self.first}-{self.last} of {self.more}"
            yield f"{part}; go on with offset={self.last + 1}"
        if self.clipped:
            cut = f"{self.clipped:,} of the lines are cut at {LONGEST_LINE:,} characters"
            yield f"{cut}, where `...` stands; search for what you need of them"
        if self.undecodable:
            yield "not UTF-8: bytes that are no text are shown as \N{REPLACEMENT CHARACTER}"
        if b"\r\n" in self.ends:
            yield "lines end in CRLF" if b"\n" not in self.ends else "some lines end in CRLF"
        if b"" in self.ends:
            yield "the last line has no line end"


async def _read(arguments: ReadArguments, context: ToolContext) -> str:
    return await asyncio.to_thread(read_file, arguments, context.cwd, context.cancel)


def read_file(arguments: ReadArguments, cwd: Path, cancel: CancelToken) -> str:
    """Do what the tool does; raises `ToolError` for what is no text."""
    path = locate(cwd, arguments.path)
    page = _Page(arguments.offset)
    limit = min(arguments.limit, MOST_LINES)
    with opened(path, cwd) as file:
        number = 0
        for number, line in enumerate(lines(file, LONGEST_LINE * _WIDEST, cancel.check), 1):
            if number < arguments.offset:
                continue
            if len(page.shown) == limit or not page.add(line):
                page.more = _total(number, file, cancel.check)
                break
    if number < arguments.offset and (number or arguments.offset > 1):
        raise ToolError(
            f"{shown(path, cwd)} has {number:,} lines; there is none at {arguments.offset:,}"
        )
    if not number:
        return "[the file is empty]"
    return "\n".join([*page.shown, *(f"[{note}]" for note in page.notes())])


def _total(number: int, file: BinaryIO, check: Callable[[], object]) -> str:
    """Count the lines after one that was read and not shown, as far as that is quick."""
    ends, last, counted = 0, b"", 0
    while counted < _MOST_COUNTED and (chunk := file.read(1024 * 1024)):
        check()
        ends += chunk.count(b"\n")
        last, counted = chunk[-1:], counted + len(chunk)
    if file.read(1):
        return f"more than {number + ends:,}"
    unended = bool(counted) and last != b"\n"
    return f"{number + ends + unended:,}"


READ = Tool(
    name="read",
    description=(
        "Read a text file. Each line comes after its number and a tab. A long file comes in parts; "
        "the end of a part says how to go on."
    ),
    arguments=ReadArguments,
    run=_read,
    parallel=True,
    changes=False,
)
