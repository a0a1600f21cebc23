"""Workers that share a list of jobs: so many at a time, all ended before anyone goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

J = TypeVar("J")
R = TypeVar("R")


async def work_through(
    jobs: Sequence[J], work: Callable[[J], Awaitable[R]], *, limit: int
) -> list[R]:
    """Do every job, at most `limit` at once, and return the results in the jobs' order.

    After a failure no further job is begun; it is raised when every worker has ended, as is the
    cancellation of the caller's task.
    """
    results: dict[int, R] = {}
    failures: list[BaseException] = []
    waiting = iter(enumerate(jobs))

    async def worker() -> None:
        for place, job in waiting:
            if failures:
                return
            try:
                results[place] = await work(job)
            # A worker that let SystemExit out would stop the loop before the others have ended.
            except BaseException as error:  # noqa: BLE001 - raised below
                failures.append(error)

    await _join([asyncio.create_task(worker()) for _ in range(min(limit, len(jobs)))])
    if failures:
        raise failures[0]
    return [results[place] for place in range(len(jobs))]


async def _join(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait for every task, cancelling them if this task is; nothing hurries the wait."""
    cancelled: asyncio.CancelledError | None = None
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError as error:
            cancelled = error
            for task in pending:
                task.cancel()
    if cancelled is not None:
        raise cancelled
