"""Waiting: for who holds a session to let it go, and for what a thread makes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from heald_persistence.errors import SessionBusy
from heald_persistence.lease import Held
from heald_session import SessionId

T = TypeVar("T")

_TRIES = 10
_FEW = 4
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


class Together:
    """Does in one thread, a few at a time, what is asked for in one step of the event loop.

    Going to a thread and back costs about what opening a log of the local disk does, and threads
    that do so at once only hold each other up.
    """

    def __init__(self) -> None:
        self._asked: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    def do(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Ask for something that blocks."""
        loop = asyncio.get_running_loop()
        if not self._asked:
            loop.call_soon(self._begin, loop)
        result: asyncio.Future[T] = loop.create_future()
        self._asked.append((work, result))
        return result

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        asked, self._asked = self._asked, []
        for start in range(0, len(asked), _FEW):
            works, results = zip(*asked[start : start + _FEW], strict=True)
            try:
                done = loop.run_in_executor(None, _outcomes, works)
            except RuntimeError as error:  # the loop is being closed, so there is no thread
                for result in results:
                    result.set_exception(error)
            else:
                done.add_done_callback(partial(_tell, results))


def _outcomes(works: Sequence[Callable[[], Any]]) -> list[tuple[Any, Exception | None]]:
    return [_outcome(work) for work in works]


def _outcome(work: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - it is the asker's
        return None, error


def _tell(results: Sequence[asyncio.Future[Any]], done: asyncio.Future[Any]) -> None:
    for result, (value, error) in zip(results, done.result(), strict=True):
        if error is None:
            result.set_result(value)
        else:
            result.set_exception(error)


async def keeping(making: asyncio.Future[T], close: Callable[[T], None]) -> T:
    """Wait for what a thread makes; who is cancelled waits all the same, and closes it."""
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        await _ended(making)
        if making.exception() is None:
            close(making.result())
        raise


def in_a_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Begin what blocks."""
    return asyncio.get_running_loop().run_in_executor(None, work)


async def _ended(work: asyncio.Future[T]) -> None:
    """Wait for work in a thread, however often the waiting is cancelled: nothing can end it."""
    while not work.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([work])
