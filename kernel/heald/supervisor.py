"""One task per row: it owns the row's exit stack from construction to the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import attrs

from heald.errors import describe
from heald.plugin import Plugin
from heald.scope import Scope

_logger = logging.getLogger("heald.rows")


@attrs.frozen
class Deadlines:
    """How long a row may take, in seconds."""

    start: float = 30.0
    stop: float = 10.0
    grace: float = 1.0
    """How long a task that was cancelled for being late may take to end; then it is left behind."""


class RowFailure(Exception):
    """A row failed at a stage, for a reason in one line; the cause is the row's own error."""

    def __init__(self, stage: str, reason: str) -> None:
        super().__init__(stage, reason)
        self.stage = stage
        self.reason = reason


class Supervisor:
    """Constructs, starts and stops one row inside one task, so that cancel scopes nest properly.

    Whatever the row raises, `sys.exit` too, ends inside that task as a `RowFailure` for whoever
    waits; only an interrupt by the person goes on to the event loop. The row's scope is closed when
    its task has ended, however it ended. `lost` is called if the row ends by itself while running,
    say because a task group in its exit stack failed, before anything of it is undone.
    """

    def __init__(
        self,
        row: str,
        scope: Scope,
        construct: Callable[[AsyncExitStack], Plugin[Any]],
        lost: Callable[[], None],
    ) -> None:
        self._row = row
        self._scope = scope
        self._construct = construct
        self._lost = lost
        self._stage = "construct"
        self._started: asyncio.Future[Plugin[Any]] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._is_lost = False
        self._failure: BaseException | None = None
        self._task = asyncio.create_task(self._run(), name=f"heald row {row}")
        # Only an interrupt ends the task with an error, and the event loop raises that one itself.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def start(self, deadlines: Deadlines) -> Plugin[Any]:
        """Wait until the row has started; raise `RowFailure` if it does not in time."""
        either: set[asyncio.Future[Any]] = {self._started, self._task}
        await asyncio.wait(either, timeout=deadlines.start, return_when=asyncio.FIRST_COMPLETED)
        if self._started.done() and not self._is_lost:
            return self._started.result()
        if not self._started.done() and not self._task.done():
            stage = self._stage
            await self._abandon(deadlines)
            raise RowFailure(stage, f"it took over {deadlines.start:g} s")
        await self.stop(deadlines)
        raise RowFailure(self._stage, "it ended by itself")

    async def stop(self, deadlines: Deadlines) -> None:
        """Wait until the row has stopped and its exit stack is undone; raise `RowFailure`.

        A row that has not started is cancelled instead.
        """
        self._stop.set()
        if self._started.done():
            await asyncio.wait({self._task}, timeout=deadlines.stop)
        if not self._task.done():
            late = self._started.done()
            await self._abandon(deadlines)
            if late:
                raise RowFailure("stop", f"it took over {deadlines.stop:g} s")
        elif self._failure is not None:
            raise RowFailure(self._stage, describe(self._failure)) from self._failure

    async def _abandon(self, deadlines: Deadlines) -> None:
        self._stop.set()  # if it swallows the cancellation, it must not stay once it has started
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=deadlines.grace)
        if not self._task.done():
            self._scope.close(f"row {self._row}")
            _logger.error("row %s does not end when cancelled; its task is left behind", self._row)

    async def _run(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                try:
                    await self._live(stack)
                except BaseException as error:
                    self._failure = error  # what undoing raises must not hide it
                    raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a row's sys.exit must not end the host
            # A task group that failed cancels us first, and says why only now.
            if self._failure is None or isinstance(self._failure, asyncio.CancelledError):
                self._failure = error
        finally:
            self._scope.close(f"row {self._row}")

    async def _live(self, stack: AsyncExitStack) -> None:
        plugin = self._construct(stack)
        self._stage = "start"
        await plugin.start()
        self._stage = "run"
        self._started.set_result(plugin)
        try:
            await self._stop.wait()
            self._stage = "stop"
        finally:
            if not self._stop.is_set():
                self._is_lost = True
                self._lost()
            await plugin.stop()
