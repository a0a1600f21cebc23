"""Waiting: for who holds a session to let it go, and for what a thread makes."""

from __future__ import annotations

import asyncio
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


def _closed(done: asyncio.Future[T], close: Callable[[T], None]) -> None:
    if not done.cancelled() and done.exception() is None:
        close(done.result())


async def keeping(make: Callable[[], T], close: Callable[[T], None]) -> T:
    """Make something in a thread; if the caller stops waiting, close what comes of it."""
    making = asyncio.ensure_future(asyncio.to_thread(make))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        making.add_done_callback(lambda done: _closed(done, close))
        raise
