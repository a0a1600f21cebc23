"""Work that is ended when it is no longer wanted or takes too long, and not waited for for ever."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable
from typing import Any, TypeVar

import attrs

from heald import CancelToken

T = TypeVar("T")
_logger = logging.getLogger("heald_agent")


class EndedItself(Exception):
    """Work ended in a way that would have ended more than itself, such as `sys.exit`."""


@attrs.frozen
class Limits:
    """When work must end."""

    cancel: CancelToken
    timeout: float = math.inf
    """Seconds it may take."""
    grace: float = 5.0
    """Seconds it may take to end once it was cancelled; then it is left behind."""


async def limited(work: Awaitable[T], limits: Limits, name: str) -> T:
    """Run `work` in a task of its own and return its result.

    Raises `Cancelled` or `TimeoutError` when it had to be ended, and `EndedItself`. Work that
    finishes while it is being ended has its result returned.
    """
    task = asyncio.create_task(_contained(work), name=name)
    timeout = None if math.isinf(limits.timeout) else limits.timeout
    try:
        with limits.cancel.as_future() as unwanted:
            first: set[asyncio.Future[Any]] = {task, unwanted}
            await asyncio.wait(first, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        await _end(task, limits.grace)
        raise
    if not task.done():
        await _end(task, limits.grace)
        if not task.done() or task.cancelled():
            limits.cancel.check()
            raise TimeoutError(f"took over {limits.timeout:g} s")
    if task.cancelled():
        limits.cancel.check()
        raise EndedItself("it cancelled itself")
    return task.result()


async def _contained(work: Awaitable[T]) -> T:
    try:
        return await work
    except SystemExit as error:
        raise EndedItself(f"it called sys.exit({error.code!r})") from error


async def _end(task: asyncio.Task[Any], grace: float) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=grace)
    if not task.done():
        _logger.error("%s does not end when cancelled; it is left behind", task.get_name())
    task.add_done_callback(_seen)


def _seen(task: asyncio.Task[Any]) -> None:
    """Take note of how an ended task ended, so that nothing complains that nobody did."""
    if not task.cancelled():
        task.exception()
