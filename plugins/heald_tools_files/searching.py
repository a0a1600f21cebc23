"""The tool `grep`: lines of text files that fit a regular expression."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import attrs
import msgspec

from heald_agent import Tool, ToolContext, ToolError
from heald_tools_files.finding import MOST_ENTRIES, path_pattern
from heald_tools_files.paths import locate, opened, trouble

MOST_MATCHES = 1_000
USUAL_MATCHES = 100
MOST_BYTES = 512 * 1024 * 1024
"""Bytes of files that one search reads."""
MOST_CHARACTERS = 64 * 1024
_GRACE = 2.0
"""Seconds over its time after which a search is stuck, the start of its process included."""
_PROGRAM = (
    "import sys; sys.path += sys.argv[1:]; "
    "from heald_tools_files.search_process import main; main()"
)
"""Our own path comes last, so that no file of the directory we are in can stand for a module."""
_LONGEST_RECORD = 1024 * 1024


class GrepArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `grep` is called with."""

    pattern: Annotated[
        str, msgspec.Meta(description="A Python regular expression, searched for in each line.")
    ]
    path: Annotated[
        str, msgspec.Meta(description="A directory or a file; default: the working directory.")
    ] = "."
    glob: Annotated[
        str | None,
        msgspec.Meta(description="Search only files that fit, such as `*.py` or `src/**/*.ts`."),
    ] = None
    ignore_case: Annotated[
        bool, msgspec.Meta(description="Whether upper and lower case are the same.")
    ] = False
    context: Annotated[
        int, msgspec.Meta(ge=0, le=20, description="Lines to show before and after each match.")
    ] = 0
    limit: Annotated[
        int, msgspec.Meta(ge=1, description=f"Lines to find, at most {MOST_MATCHES:,}.")
    ] = USUAL_MATCHES


def grep_tool(seconds: float) -> Tool[GrepArguments]:
    """Make the tool; a search ends after so many seconds."""

    async def grep(arguments: GrepArguments, context: ToolContext) -> str:
        request = await asyncio.to_thread(_request, arguments, context.cwd, seconds)
        outcome = await _search(request, context, seconds + _GRACE)
        context.cancel.check()
        return outcome.text(request)

    return Tool(
        name="grep",
        description=(
            "Search text files, in path order, for lines that fit a regular expression. Lines come "
            "as path:number:text, those of the context as path-number-text. Binary files, symbolic "
            "links and files that .gitignore names are left out."
        ),
        arguments=GrepArguments,
        run=grep,
        parallel=True,
        changes=False,
    )


def _request(arguments: GrepArguments, cwd: Path, seconds: float) -> dict[str, Any]:
    root = locate(cwd, arguments.path)
    if arguments.glob is not None:
        path_pattern(arguments.glob)
    try:
        if root.is_dir():
            os.scandir(root).close()
        else:
            with opened(root, cwd):
                pass
    except OSError as error:
        raise trouble(error, root, cwd) from error
    return {
        **msgspec.to_builtins(arguments),
        "root": str(root),
        "cwd": str(cwd),
        "limit": min(arguments.limit, MOST_MATCHES),
        "seconds": seconds,
        "entries": MOST_ENTRIES,
        "bytes": MOST_BYTES,
        "characters": MOST_CHARACTERS,
    }


@attrs.define
class _Outcome:
    """What a search wrote, whole or up to where it was killed."""

    found: list[str] = attrs.field(factory=list)
    end: dict[str, Any] | None = None
    stuck: bool = False

    def take(self, record: str | dict[str, Any]) -> None:
        if isinstance(record, str):
            self.found.append(record)
        else:
            self.end = record

    def text(self, request: dict[str, Any]) -> str:
        if self.stuck:
            return self._with("stopped: the expression takes too long on one line; simplify it")
        if self.end is None:
            raise ToolError("the search ended early; narrow the path and try again")
        if "invalid" in self.end:
            raise ToolError(_invalid(request["pattern"], self.end))
        return self._with(*_notes(self.end))

    def _with(self, *notes: str) -> str:
        return "\n".join([*self.found, *(f"[{note}]" for note in notes)])


def _invalid(pattern: str, end: dict[str, Any]) -> str:
    where = "" if end["position"] is None else f" at position {end['position']}"
    return f"not a regular expression{where}: {end['invalid']}: {pattern!r}"


def _notes(end: dict[str, Any]) -> Iterator[str]:
    if not end["matches"]:
        yield "no line matches"
    if end["full"]:
        yield f"stopped after {end['full']}; there are more: narrow the pattern, path or glob"
    elif end["spent"]:
        yield f"stopped after {end['spent']}, so there may be more: narrow path or glob"
    if end["unreadable"]:
        yield f"{end['unreadable']:,} files or directories could not be read"
    if end["binary"]:
        yield f"{end['binary']:,} binary files were not searched"
    if end["long"]:
        yield f"{end['long']:,} lines were searched in their first million bytes only"


async def _search(request: dict[str, Any], context: ToolContext, seconds: float) -> _Outcome:
    """Run the search in a process of its own, and kill it when it is late or not wanted."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-c", _PROGRAM, *sys.path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=_LONGEST_RECORD,
    )
    outcome = _Outcome()
    owner = object()
    context.cancel.on_cancel(lambda: _kill(process), owner=owner)
    try:
        async with asyncio.timeout(seconds):
            await _talk(process, request, outcome)
    except TimeoutError:
        outcome.stuck = True
        _kill(process)
    except BaseException:
        _kill(process)
        raise
    finally:
        context.cancel.forget(owner)
        await process.wait()
    return outcome


async def _talk(
    process: asyncio.subprocess.Process, request: dict[str, Any], outcome: _Outcome
) -> None:
    assert process.stdin is not None  # noqa: S101 - they are pipes
    assert process.stdout is not None  # noqa: S101
    process.stdin.write(json.dumps(request).encode())
    process.stdin.close()
    async for line in process.stdout:
        outcome.take(json.loads(line))


def _kill(process: asyncio.subprocess.Process) -> None:
    # Not `process.kill`: that may take the end of the process away from whoever waits for it.
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
