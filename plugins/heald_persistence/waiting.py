"""Waiting: for who holds a session to let it go, and for what a thread makes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from heald_persistence.errors import SessionBusy
from heald_persistence.lease import Held
from heald_session import SessionId

T = TypeVar("T")

_TRIES = 10
_BETWEEN_TRIES = 0.05
"""Seconds; a writer that is just leaving lets go within the tries."""


async def patiently(id: SessionId, take: Callable[[], Awaitable[T]]) -> T:  # noqa: A002
    """Try to take what somebody holds a few times; then raise `SessionBusy`."""
    for left in reversed(range(_TRIES)):
        try:
            return await take()
        except Held as held:
            if left == 0:
                raise SessionBusy(id, held.owner) from None
            await asyncio.sleep(_BETWEEN_TRIES)
    raise AssertionError  # the last try returns or raises


async def keeping(make: Callable[[], T], close: Callable[[T], None]) -> T:
    """Make something in a thread; a caller that is cancelled waits for it and closes it."""
    making = asyncio.get_running_loop().run_in_executor(None, make)
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        await _ended(making)
        if making.exception() is None:
            close(making.result())
        raise


async def in_a_thread(work: Callable[[], T]) -> T:
    """Do in a thread what must be done to its end; a caller that is cancelled waits for it."""
    return await keeping(work, lambda _: None)


async def _ended(work: asyncio.Future[T]) -> None:
    """Wait for work in a thread, however often the waiting is cancelled: nothing can end it."""
    while not work.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([work])
