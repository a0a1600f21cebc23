"""A host: the composition that everything runs on, and what is known of the whole process."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs

from heald.composition import Composition
from heald.discovery import Discovery
from heald.documents import Layer
from heald.errors import CompositionError, describe
from heald.faults import Fault
from heald.hooks import Declare
from heald.layers import Stack, stack
from heald.lifecycle import host_closing
from heald.planned import Plan
from heald.planning import Below, Declarations, configure, declarations, plan
from heald.profiles import home_directory, read_profile, usable_home
from heald.rows import Row
from heald.scope import Scope
from heald.shape import shape_of
from heald.supervisor import Deadlines
from heald.vocabulary import Declared, Vocabulary, declared

T = TypeVar("T")
_logger = logging.getLogger("heald.host")


def now_ms() -> int:
    """Return the time in integer milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


@attrs.define(eq=False)
class Host:
    """What rows reach through `scope.host`; opened with `open_host`."""

    home: Path
    discovery: Discovery
    env: Mapping[str, str] = attrs.field(repr=False)
    deadlines: Deadlines
    recompose: Callable[[], Stack] = attrs.field(repr=False)
    """Reads what the host was composed from anew, and returns the rows it comes to now.

    What runs stays as it is. It blocks, and raises what `open_host` would.
    """
    now: Callable[[], int] = now_ms
    """The one place time comes from: integer milliseconds since the epoch."""
    revision: int = attrs.field(default=0, init=False)
    """Grows with every change of the host composition's rows, running or failed."""
    constructed: int = attrs.field(default=0, init=False)
    """How many plugins were constructed so far, in every composition."""
    composition: Composition = attrs.field(init=False, repr=False)
    _vocabularies: dict[Declare[Any], tuple[int, Vocabulary[Any]]] = attrs.field(
        factory=dict, init=False, repr=False
    )
    _declared: tuple[int, Declarations] | None = attrs.field(default=None, init=False, repr=False)
    _told: set[str] = attrs.field(factory=set, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.composition = Composition("host", self)

    @property
    def scope(self) -> Scope:
        """The host composition's scope."""
        return self.composition.scope

    def vocabulary(self, spec: Declare[T]) -> Vocabulary[T]:
        """Return what every installed plugin class declares, importing it when first needed.

        A plugin whose vocabulary cannot be had is told of once, and it is absent.
        """
        known = self._vocabularies.get(spec)
        if known is None or known[0] != self.revision:
            vocabulary = Vocabulary(spec, self._declarations(spec))
            known = self._vocabularies[spec] = self.revision, vocabulary
        return known[1]

    def _declarations(self, spec: Declare[T]) -> list[Declared[T]]:
        # Rows of the plan, not those that have started: the answer must not change as they do.
        failed = {row.row for row in self.composition.failed}
        rows = (planned.row for planned in self.composition.plan.rows)
        mounted = {row.plugin for row in rows if row.id not in failed}
        found: list[Declared[T]] = []
        for name in self.discovery.plugins:
            try:
                cls = self.discovery.plugin_class(name)
            except ImportError as error:
                self._tell_once(name, str(error))
                continue
            for _, attribute in (item for item in shape_of(cls).declares if item[0] is spec):
                try:
                    entries = declared(cls, spec, attribute)
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # noqa: BLE001 - it may even sys.exit
                    self._tell_once(name, describe(error))
                else:
                    found += [Declared(entry, name, name in mounted) for entry in entries]
        return found

    def _tell_once(self, plugin: str, reason: str) -> None:
        if plugin not in self._told | {row.plugin for row in self.composition.failed}:
            _logger.warning("plugin %s: its vocabulary is absent: %s", plugin, reason)
        self._told.add(plugin)

    def reread(self, row: str) -> Any:
        """Return what a running row's configuration would be if the host were composed now.

        For settings that a row asks for each time. A row that is no more in what the host is
        composed from keeps what it was mounted with. It blocks, and raises `CompositionError`.
        """
        mounted = next(planned for planned in self.composition.plan.rows if planned.row.id == row)
        for fresh in self.recompose().rows:
            if (fresh.id, fresh.plugin) == (row, mounted.row.plugin):
                faults: list[Fault] = []
                config = configure(fresh, mounted.cls, faults, [])
                if faults:
                    raise CompositionError(tuple(faults))
                return config
        return mounted.config

    async def mount(
        self, name: str, rows: Sequence[Row], directories: Sequence[Path] = ()
    ) -> Composition:
        """Mount a composition above the host's, whole or not at all; `close` it when done.

        `directories` are where the rows came from, nearest first; the rows find them on their
        composition. Raises `CompositionError` before anything starts, or `RowsFailed` with every
        failed row.
        """
        planned = self._plan(rows)
        composition = Composition(name, self, self.composition, tuple(directories))
        await composition.mount(planned, whole=True)
        _tell(planned.notices)
        return composition

    def check(self, rows: Sequence[Row]) -> tuple[Fault, ...]:
        """Return what is structurally wrong with rows for a composition above the host's.

        Imports the plugins they name and starts nothing; what fails only when it runs is not here.
        """
        try:
            self._plan(rows)
        except CompositionError as error:
            return error.faults
        return ()

    def _plan(self, rows: Sequence[Row]) -> Plan:
        host = self.composition
        if self._declared is None or self._declared[0] != self.revision:
            running = (row.planned for row in host.mounted)
            self._declared = self.revision, declarations(running)
        below = Below(host.tables.provided, self._declared[1], tuple(host.failed))
        return plan(rows, self.discovery, below)

    async def _take_leave(self) -> None:
        if self.composition.closed:
            return
        try:
            async with asyncio.timeout(self.deadlines.stop):
                await self.scope.notify(host_closing)
        except TimeoutError:
            _logger.warning("what was running did not end in %g s", self.deadlines.stop)

    async def _mount_own(self, rows: Sequence[Row], *, strict: bool) -> None:
        planned = plan(rows, self.discovery)
        _tell(planned.notices)
        await self.composition.mount(planned, whole=strict)


def _tell(notices: Sequence[str]) -> None:
    for notice in notices:
        _logger.warning("%s", notice)


@asynccontextmanager
async def open_host(
    *,
    home: Path | None = None,
    profile: str | None = None,
    patches: Sequence[Path | Layer] = (),
    rows: Sequence[Row] | None = None,
    env: Mapping[str, str] | None = None,
    discovery: Discovery | None = None,
    deadlines: Deadlines | None = None,
    strict: bool = False,
) -> AsyncIterator[Host]:
    """Compose and run a host for the length of the block.

    Without `rows` they are what the profile's layers come to. Raises `CompositionError` if they do
    not fit together; a row that fails is kept in `host.composition.failed`, or with `strict` raises
    `RowsFailed`.
    """
    environ = os.environ if env is None else env
    home = usable_home(home if home is not None else home_directory(environ))
    discovery = discovery if discovery is not None else Discovery()

    def compose() -> Stack:
        if rows is not None:
            return Stack(tuple(rows), ())
        profiled = read_profile(home, discovery, name=profile, patches=patches)
        return stack(profiled.layers, environ)

    stacked = compose()
    _tell(stacked.notices)
    deadlines = deadlines if deadlines is not None else Deadlines()
    host = Host(home, discovery, environ, deadlines, compose)
    try:
        await host._mount_own(stacked.rows, strict=strict)  # noqa: SLF001 - the host's own factory
        yield host
    finally:
        try:
            await host._take_leave()  # noqa: SLF001
        finally:
            await host.composition.close()
