"""The tool `write`, and the one way a file is replaced: whole or not at all."""

from __future__ import annotations

import asyncio
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from heald_agent import Tool, ToolContext, ToolError
from heald_tools_files.names import shown
from heald_tools_files.paths import locate, trouble


class WriteArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `write` is called with."""

    path: Annotated[
        str, msgspec.Meta(description="The file; directories that are missing are made.")
    ]
    content: Annotated[str, msgspec.Meta(description="All that the file is to hold.")]


def write_tool(*, outside: bool) -> Tool[WriteArguments]:
    """Make the tool; it writes outside the session's directory only if that is allowed."""

    async def write(arguments: WriteArguments, context: ToolContext) -> str:
        return await asyncio.to_thread(write_file, arguments, context, outside=outside)

    return Tool(
        name="write",
        description="Write a whole file, in place of what it held if it exists.",
        arguments=WriteArguments,
        run=write,
    )


def write_file(arguments: WriteArguments, context: ToolContext, *, outside: bool) -> str:
    """Do what the tool does; raises `ToolError` and then changes nothing."""
    cwd = context.cwd
    path = writable(cwd, arguments.path, outside=outside)
    data = encoded(arguments.content, "content")
    context.cancel.check()
    try:
        old = _existing(path, cwd)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, data, old)
    except OSError as error:
        raise trouble(error, path, cwd) from error
    lines = arguments.content.count("\n") + (not arguments.content.endswith("\n"))
    what = f"{lines if data else 0:,} lines, {len(data):,} bytes"
    return f"{'replaced' if old else 'created'} {shown(path, cwd)} ({what})"


def writable(cwd: Path, written: str, *, outside: bool) -> Path:
    """Return the file that would really be written, all links followed.

    Raises `ToolError` if it is outside the session's directory and may not be.
    """
    path = Path(os.path.realpath(locate(cwd, written)))
    if not outside and not path.is_relative_to(os.path.realpath(cwd)):
        raise ToolError(
            f"{shown(path, cwd)} is outside {shown(cwd, cwd)}; write only beneath that directory"
        )
    if os.path.islink(path):  # noqa: PTH114 - False, not an error, where nothing can be
        raise ToolError(f"{shown(path, cwd)} is a symbolic link that leads in a circle")
    return path


def encoded(text: str, field: str) -> bytes:
    """Return text as bytes; raises `ToolError` for text that UTF-8 cannot hold."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(f"{field} is not Unicode text: {error.reason}") from error


def _existing(path: Path, cwd: Path) -> os.stat_result | None:
    try:
        old = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(old.st_mode):
        raise ToolError(f"{shown(path, cwd)} is not a file and cannot be replaced by one")
    return old


def replace(path: Path, data: bytes, old: os.stat_result | None) -> None:
    """Put new bytes in a file's place: a reader sees the old file or the new one, never a part.

    Mode and owner stay as they are in `old`, the file that is replaced. Raises `OSError`.
    """
    if old is not None and not os.access(path, os.W_OK):
        raise PermissionError
    beside = path.with_name(f".heald-{secrets.token_hex(8)}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if old is not None:
                _keep(descriptor, old)
            os.fsync(descriptor)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _keep(descriptor: int, old: os.stat_result) -> None:
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):  # only root may give a file away
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
