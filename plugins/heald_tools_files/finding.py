"""The tool `glob`: files by the pattern of their path."""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec

from heald import CancelToken
from heald_agent import Tool, ToolContext, ToolError
from heald_tools_files.names import shown
from heald_tools_files.paths import locate, trouble
from heald_tools_files.patterns import PathPattern, PatternInvalid, split_root
from heald_tools_files.tree import Budget, Walk

MOST_PATHS = 1_000
USUAL_PATHS = 200
MOST_ENTRIES = 200_000
"""Files and directories that one walk looks at."""


class GlobArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `glob` is called with."""

    pattern: Annotated[
        str,
        msgspec.Meta(
            description="`*.py` (at any depth), `src/**/*.{js,ts}`, or `./*` (in this directory)."
        ),
    ]
    path: Annotated[
        str, msgspec.Meta(description="The directory to look in; default: the working directory.")
    ] = "."
    limit: Annotated[
        int, msgspec.Meta(ge=1, description=f"How many paths to return, at most {MOST_PATHS:,}.")
    ] = USUAL_PATHS


def path_pattern(text: str) -> PathPattern:
    """Make a pattern of what a model wrote."""
    try:
        return PathPattern(text)
    except PatternInvalid as error:
        raise ToolError(f"pattern {text!r}: {error}") from error


def glob_tool(seconds: float) -> Tool[GlobArguments]:
    """Make the tool; a search ends after so many seconds."""

    async def glob(arguments: GlobArguments, context: ToolContext) -> str:
        return await asyncio.to_thread(_glob, arguments, context.cwd, context.cancel, seconds)

    return Tool(
        name="glob",
        description=(
            "Find files whose path fits a pattern, sorted by path. A pattern without a slash fits "
            "names at any depth. Files that .gitignore names are left out."
        ),
        arguments=GlobArguments,
        run=glob,
        parallel=True,
        changes=False,
    )


def _glob(arguments: GlobArguments, cwd: Path, cancel: CancelToken, seconds: float) -> str:
    upwards, rest = split_root(arguments.pattern)
    pattern = path_pattern(rest)
    root = locate(cwd, arguments.path) / upwards
    root = root.resolve() if ".." in root.parts else root.absolute()
    budget = Budget(MOST_ENTRIES, seconds, cancel.check)
    walk = Walk(root, budget)
    limit = min(arguments.limit, MOST_PATHS)
    try:
        entries = walk.files(pattern.leads_into)
        matching = (entry for entry in entries if pattern.matches(entry.names))
        found = [shown(entry.path, cwd) for entry in islice(matching, limit + 1)]
    except OSError as error:
        raise trouble(error, root, cwd) from error
    return "\n".join([*found[:limit], *_notes(found, limit, budget, walk)])


def _notes(found: list[str], limit: int, budget: Budget, walk: Walk) -> list[str]:
    notes = []
    if not found:
        notes.append("no file fits the pattern")
    if len(found) > limit:
        notes.append(f"there are more than these {limit:,}; narrow the pattern or the path")
    elif budget.spent:
        notes.append(f"stopped after {budget.spent}, so there may be more; narrow the path")
    if walk.unreadable:
        notes.append(f"{walk.unreadable:,} directories could not be read")
    return [f"[{note}]" for note in notes]
