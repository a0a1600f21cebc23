"""Mounted rows and their compiled tables; the host's, or one preset generation's above it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from heald.errors import RowsFailed, ScopeClosed
from heald.faults import FailedRow
from heald.mounted import MountedRow, gather
from heald.planned import Plan, PlannedRow
from heald.plugin import Plugin, RowContext
from heald.registry import Registry
from heald.scope import Scope
from heald.supervisor import RowFailure, Supervisor
from heald.tables import Tables

if TYPE_CHECKING:
    from heald.host import Host

T = TypeVar("T")
_logger = logging.getLogger("heald.rows")


class Composition:
    """Rows mounted together: looked up through scopes, stopped together in reverse.

    Hooks of a row appear after its `start` returned and vanish before its `stop` begins.
    """

    def __init__(
        self,
        name: str,
        host: Host,
        parent: Composition | None = None,
        directories: tuple[Path, ...] = (),
    ) -> None:
        self.name = name
        self.host = host
        self.parent = parent
        self.directories = directories
        """What its rows may find files in that were brought along with them, nearest first."""
        self.plan = Plan()
        self.mounted: tuple[MountedRow, ...] = ()
        """Running rows in row order, which is the order of everything they contribute."""
        self.failed: tuple[FailedRow, ...] = ()
        self.scope = Scope(self)
        self._supervisors: dict[str, tuple[PlannedRow, Supervisor]] = {}
        """Every row that has something to undo, in the order of mounting."""
        self._registry = Registry()
        self._children: list[Composition] = []
        self._mounting = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None
        self._losing: set[asyncio.Task[None]] = set()
        self.tables = Tables(self)
        if parent is not None:
            parent.refuse_if_closed()
            parent._children.append(self)  # noqa: SLF001 - the same class

    @property
    def itself(self) -> Composition:
        """The composition, where a scope may point at a closed one instead."""
        return self

    @property
    def closed(self) -> bool:
        """Whether the composition is stopping or has stopped."""
        return self._closing is not None

    @property
    def is_whole(self) -> bool:
        """Whether every row that is meant to run does."""
        return len(self.mounted) == len(self.plan.rows) and not self.plan.failed

    def all_failed(self) -> Iterator[FailedRow]:
        """Yield failed rows of this composition and of its parents."""
        yield from self.failed
        if self.parent is not None:
            yield from self.parent.all_failed()

    def listener_failures(self) -> Mapping[str, int]:
        """Count, by plugin name, how often a listener of a running row raised."""
        failures: Counter[str] = Counter()
        for row in self.mounted:
            for listener in (one for many in row.listeners.values() for one in many):
                failures[row.planned.row.plugin] += listener.failures
        return {plugin: count for plugin, count in failures.items() if count}

    async def mount(self, plan: Plan, *, whole: bool) -> None:
        """Mount a plan's rows.

        With `whole`, any failed row undoes what was mounted and raises `RowsFailed` with all of
        them; else failed rows and their dependants are kept in `failed`, and the rest runs.
        """
        try:
            async with self._mounting:
                self.plan = plan
                for failed in plan.failed:
                    self._record(failed)
                for planned in plan.rows:
                    self.refuse_if_closed()
                    await self._mount_row(planned)
        except BaseException:
            await self.close()
            raise
        if whole and self.failed:
            await self.close()
            raise RowsFailed(self.name, self.failed)

    async def close(self) -> None:
        """Stop every row in reverse and wait for it; a second call waits for the first.

        A cancellation meanwhile is raised when everything has stopped. Every row has a deadline.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"closing {self.name}")
        await _finished(self._closing)

    async def _close(self) -> None:
        for child in list(self._children):
            await child.close()
        async with self._mounting:
            for id_ in reversed(self._supervisors):
                self._detach({id_})
                await self._stop(id_)
        if self._losing:
            await asyncio.wait(self._losing)
        self.scope.close(self._title)
        if self.parent is not None:
            self.parent._children.remove(self)  # noqa: SLF001 - the same class

    async def _stop(self, id_: str) -> None:
        planned, supervisor = self._supervisors[id_]
        try:
            await supervisor.stop(self.host.deadlines)
        except RowFailure as failure:
            self._record_failure(planned, failure)

    async def _mount_row(self, planned: PlannedRow) -> None:
        running = {row.id for row in self.mounted}
        needs = self.plan.needs[planned.row.id]
        if because := tuple(need for need in needs if need not in running):
            self._record_dependant(planned, because)
            return
        id_ = planned.row.id
        supervisor = self._supervise(planned)
        self._supervisors[id_] = planned, supervisor
        try:
            plugin = await supervisor.start(self.host.deadlines)
        except RowFailure as failure:
            self._record_failure(planned, failure)
            del self._supervisors[id_]
            return
        try:
            row = gather(planned, plugin, self.mounted)
        except RowFailure as failure:
            self._record_failure(planned, failure)
            await self._stop(id_)
            return
        self._registry.add(row)
        self.mounted = tuple(sorted([*self.mounted, row], key=lambda row: row.planned.place))
        self._changed()

    def _supervise(self, planned: PlannedRow) -> Supervisor:
        scope = Scope(self)

        def construct(stack: AsyncExitStack) -> Plugin[Any]:
            self.host.constructed += 1
            logger = logging.getLogger(planned.cls.__module__.partition(".")[0])
            return planned.cls(RowContext(planned.row.id, planned.config, scope, stack, logger))

        return Supervisor(planned.row.id, scope, construct, lambda: self._lose(planned.row.id))

    def _lose(self, id_: str) -> None:
        """Take a row that ended by itself away at once, and stop those that need it."""
        lost = self._with_dependants(id_)
        self._detach(set(lost))
        for planned in list(lost.values())[1:]:
            needs = self.plan.needs[planned.row.id]
            self._record_dependant(planned, tuple(need for need in needs if need in lost))

        async def stop() -> None:
            for each in reversed(lost):
                await self._stop(each)

        task = asyncio.create_task(stop(), name=f"losing {id_} of {self.name}")
        self._losing.add(task)
        task.add_done_callback(self._losing.discard)

    def _with_dependants(self, id_: str) -> dict[str, PlannedRow]:
        """Return a running row and all that need it, in the order of mounting."""
        running = {row.id for row in self.mounted}
        found: dict[str, PlannedRow] = {}
        for planned in self.plan.rows:
            row = planned.row.id
            needs_it = any(need in found for need in self.plan.needs[row])
            if row in running and (row == id_ or needs_it):
                found[row] = planned
        return found

    def _detach(self, ids: set[str]) -> None:
        """Take rows out of every later lookup."""
        gone = [row for row in self.mounted if row.id in ids]
        if gone:
            for row in gone:
                self._registry.remove(row)
            self.mounted = tuple(row for row in self.mounted if row.id not in ids)
            self._changed()

    def _record_dependant(self, planned: PlannedRow, because: tuple[str, ...]) -> None:
        reason = f"needs failed row {', '.join(because)}"
        self._record(planned.failed("requires", reason, because))

    def _record_failure(self, planned: PlannedRow, failure: RowFailure) -> None:
        self._record(planned.failed(failure.stage, failure.reason))
        _logger.debug("row %s", planned.row.id, exc_info=failure)

    def _record(self, failed: FailedRow) -> None:
        """Tell of a failure, and keep it; a row's first one is what it is known for."""
        known = {other.row: other for other in self.failed}
        if failed != known.get(failed.row):
            _logger.warning("%s: %s", self.name, failed)
        self.failed = tuple((known | {failed.row: known.get(failed.row, failed)}).values())
        self.host.revision += 1 if self.parent is None else 0

    @property
    def _title(self) -> str:
        return f"composition {self.name}"

    def refuse_if_closed(self) -> None:
        """Raise `ScopeClosed` once the composition is stopping."""
        if self.closed:
            raise ScopeClosed(self._title)

    def _changed(self) -> None:
        self.tables = Tables(self)
        self.host.revision += 1 if self.parent is None else 0
        for child in self._children:
            child._changed()  # noqa: SLF001 - the same class


async def _finished(task: asyncio.Task[T]) -> T:
    """Wait for a task however often the waiting is cancelled; the cancellation is raised after."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()
