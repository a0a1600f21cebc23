"""Lines put between the lines of a file."""

from __future__ import annotations

import attrs
import msgspec

from heald_agent import ToolContext, ToolError
from heald_tools_files.editing import ended_alike, rewrite
from heald_tools_files.writing import encoded


class InsertArguments(msgspec.Struct, frozen=True):
    """What is put where: `line` is the one it comes after, 0 the beginning of the file."""

    path: str
    line: int
    content: str


@attrs.frozen
class Inserted:
    """A text after lines were put into it, and which they are now."""

    text: str
    first: int
    last: int


def inserted(text: str, line: int, new: str) -> Inserted:
    """Put whole lines after a line; raises `ToolError` if there is no such line.

    They end as most lines of the text do, and so does the line before them if it had no end.
    """
    lines = text.split("\n")
    lines = [f"{each}\n" for each in lines[:-1]] + lines[-1:] * bool(lines[-1])
    if line > len(lines):
        raise ToolError(f"the file has {len(lines):,} lines; there is none at {line:,}")
    before, after = "".join(lines[:line]), "".join(lines[line:])
    whole = ended_alike(text, new if new.endswith("\n") else f"{new}\n")
    if before and not before.endswith("\n"):
        before += ended_alike(text, "\n")
    return Inserted(before + whole + after, line + 1, line + whole.count("\n"))


def insert_lines(arguments: InsertArguments, context: ToolContext, *, outside: bool) -> str:
    """Put lines into a file and say where; raises `ToolError` and then changes nothing."""
    if not arguments.content:
        raise ToolError("there is nothing to insert; an empty line is a line end alone")
    encoded(arguments.content, "content")
    name, outcome = rewrite(
        arguments.path,
        context,
        lambda text: inserted(text, arguments.line, arguments.content),
        outside=outside,
    )
    many = outcome.last > outcome.first
    where = f"lines {outcome.first:,}-{outcome.last:,}" if many else f"line {outcome.first:,}"
    return f"inserted {where} into {name}"
