"""The terminal that a person sits at: whether there is one, and a line that is typed there."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from typing import Any

LONGEST = 65_536
"""How many bytes of a line are read; a terminal hands over fewer."""


def is_there() -> bool:
    """Say whether a person can be shown something and can type."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)


def forget_typed() -> None:
    """Drop what was typed before a question was shown: it cannot be the answer."""
    import termios  # noqa: PLC0415 - where it does not exist nothing is asked

    with suppress(termios.error):  # the terminal went away, and reading will say so
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def read_line(unless: asyncio.Future[Any]) -> str | None:
    """Return the next line, empty at the end of input; None if `unless` is done first.

    The loop waits for the terminal, not a thread: a thread that reads could not be called back.
    """
    loop, fd = asyncio.get_running_loop(), sys.stdin.fileno()
    typed: asyncio.Future[str] = loop.create_future()
    loop.add_reader(fd, _take, fd, typed)
    try:
        first: set[asyncio.Future[Any]] = {typed, unless}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(fd)
    return typed.result() if typed.done() else None


def _take(fd: int, typed: asyncio.Future[str]) -> None:
    if typed.done():
        return
    try:
        line = os.read(fd, LONGEST)
    except OSError:  # the terminal went away, which is an end like another
        line = b""
    typed.set_result(line.decode("utf-8", "replace").strip())
