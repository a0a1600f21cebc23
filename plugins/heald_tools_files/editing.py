"""The tool `edit`: one piece of text for another, in exactly the place that was meant."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

import attrs
import msgspec

from heald import counted
from heald_agent import Tool, ToolContext, ToolError
from heald_tools_files.names import shown
from heald_tools_files.paths import opened, trouble
from heald_tools_files.writing import encoded, replace, writable

MOST_BYTES = 64 * 1024 * 1024
_MOST_PLACES = 1_000
"""Places that are counted where only one may be."""
_MOST_NAMED = 5


class EditArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `edit` is called with."""

    path: Annotated[str, msgspec.Meta(description="The file to change.")]
    old: Annotated[
        str,
        msgspec.Meta(
            description="The text to replace, exactly as it is in the file, without line numbers; "
            "enough of it that it occurs only once."
        ),
    ]
    new: Annotated[str, msgspec.Meta(description="The text to put in its place.")]
    all: Annotated[
        bool, msgspec.Meta(description="Replace every occurrence instead of the only one.")
    ] = False


def edit_tool(*, outside: bool) -> Tool[EditArguments]:
    """Make the tool; it changes files outside the session's directory only if that is allowed."""

    async def edit(arguments: EditArguments, context: ToolContext) -> str:
        return await asyncio.to_thread(edit_file, arguments, context, outside=outside)

    return Tool(
        name="edit",
        description=(
            "Replace a piece of text in a file. It must occur exactly once, unless `all` is set. "
            "In a file whose lines end in CRLF, write them with a plain newline."
        ),
        arguments=EditArguments,
        run=edit,
    )


class Changed(Protocol):
    """What came of a text."""

    @property
    def text(self) -> str:
        """What the file is to hold."""
        ...


C = TypeVar("C", bound=Changed)


@attrs.frozen
class Replaced:
    """A text after an edit, and the lines on which the replaced pieces began."""

    text: str
    lines: tuple[int, ...]
    count: int


def replaced(text: str, old: str, new: str, *, every: bool) -> Replaced:
    """Replace `old`; raises `ToolError` unless it occurs once, or at all if `every` may go.

    Occurrences that overlap count, for either could be meant. Where lines end in CRLF, a newline in
    `old` stands for either line end and one in `new` for what most lines of the text end in, unless
    `old` has a carriage return itself.
    """
    pattern, new = _pattern(text, old, new)
    places = _places(pattern, text)
    if not places:
        raise ToolError(f"the text to replace does not occur{_hint(text, old)}")
    if len(places) > 1 and not every:
        raise ToolError(
            f"the text to replace occurs {_count(places)} times ({_named(text, places)}); "
            "give more of its surroundings, or set `all`"
        )
    changed, count = pattern.subn(lambda _: new, text)
    return Replaced(changed, _line_numbers(text, places[:_MOST_NAMED]), count)


def _pattern(text: str, old: str, new: str) -> tuple[re.Pattern[str], str]:
    exact = re.escape(old)
    crlf = text.count("\r\n")
    if not crlf or "\r" in old:
        return re.compile(exact), new
    either = exact.replace("\\\n", r"(?:\r\n|(?<!\r)\n)")
    return re.compile(either), ended_alike(text, new)


def ended_alike(text: str, new: str) -> str:
    """Return `new` with its lines ended as most lines of `text` are."""
    plain = new.replace("\r\n", "\n")
    is_crlf = 2 * text.count("\r\n") > text.count("\n")
    return plain.replace("\n", "\r\n") if is_crlf else plain


def _places(pattern: re.Pattern[str], text: str) -> list[int]:
    places: list[int] = []
    found = pattern.search(text)
    while found and len(places) < _MOST_PLACES:
        places.append(found.start())
        found = pattern.search(text, found.start() + 1)
    return places


def _count(places: Sequence[int]) -> str:
    return f"{len(places):,}" if len(places) < _MOST_PLACES else f"{_MOST_PLACES:,} or more"


def _line_numbers(text: str, places: Sequence[int]) -> tuple[int, ...]:
    return tuple(text.count("\n", 0, place) + 1 for place in places)


def _named(text: str, places: Sequence[int]) -> str:
    numbers = ", ".join(str(n) for n in _line_numbers(text, places[:_MOST_NAMED]))
    return f"on lines {numbers}{', ...' if len(places) > _MOST_NAMED else ''}"


def _hint(text: str, old: str) -> str:
    """Say what is likely wrong with a text that does not occur."""
    if re.match(r" *\d+\t", old):
        return "; leave out the line numbers, which are no part of the file"
    wanted = [line.strip() for line in old.strip().splitlines()]
    lines = [line.strip() for line in text.splitlines()]
    starts = (n for n, line in enumerate(lines) if wanted and line == wanted[0])
    for n in islice(starts, _MOST_PLACES):
        if lines[n : n + len(wanted)] == wanted:
            return f"; line {n + 1} differs from it in white space only: read it and copy exactly"
    return "; read the file again and copy exactly"


def edit_file(arguments: EditArguments, context: ToolContext, *, outside: bool) -> str:
    """Do what the tool does; raises `ToolError` and then changes nothing."""
    old, new = arguments.old, arguments.new
    if not old:
        raise ToolError("the text to replace is empty; give some of the text that the file holds")
    if old == new:
        raise ToolError("old and new are the same text; nothing would change")
    encoded(old, "old")
    encoded(new, "new")
    name, outcome = rewrite(
        arguments.path,
        context,
        lambda text: replaced(text, old, new, every=arguments.all),
        outside=outside,
    )
    places = counted(outcome.count, "place")
    lines = ", ".join(str(line) for line in outcome.lines)
    more = ", ..." if outcome.count > len(outcome.lines) else ""
    return f"replaced {places} in {name} (from line {lines}{more})"


def rewrite(
    written: str, context: ToolContext, change: Callable[[str], C], *, outside: bool
) -> tuple[str, C]:
    """Change the text of a file, and return its name and what came of the text.

    Raises `ToolError`, also if somebody else changed the file meanwhile, and then changes nothing.
    """
    cwd = context.cwd
    path = writable(cwd, written, outside=outside)
    data, before = _load(path, cwd)
    context.cancel.check()
    # Bytes that are not UTF-8 go through unchanged.
    outcome = change(data.decode("utf-8", "surrogateescape"))
    try:
        if _changed(before, path.stat()):
            raise ToolError(f"{shown(path, cwd)} was changed by somebody else; read it again")
        replace(path, outcome.text.encode("utf-8", "surrogateescape"), before)
    except OSError as error:
        raise trouble(error, path, cwd) from error
    return shown(path, cwd), outcome


def _load(path: Path, cwd: Path) -> tuple[bytes, os.stat_result]:
    with opened(path, cwd) as file:
        before = os.fstat(file.fileno())
        if before.st_size > MOST_BYTES:
            raise ToolError(f"{shown(path, cwd)} is too large to edit ({before.st_size:,} bytes)")
        data = file.read(MOST_BYTES + 1)
    return data, before


def _changed(before: os.stat_result, now: os.stat_result) -> bool:
    def identity(of: os.stat_result) -> tuple[int, ...]:
        return (of.st_dev, of.st_ino, of.st_size, of.st_mtime_ns)

    return identity(before) != identity(now)
