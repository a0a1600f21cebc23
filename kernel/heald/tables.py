"""Flat tables that a composition is compiled to, so that no call walks rows or asks pluggy."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import attrs

from heald.hooks import Collect, Provide, Spec, Wrap
from heald.rows import RowOrigin

if TYPE_CHECKING:
    from heald.composition import Composition
    from heald.mounted import MountedRow

T = TypeVar("T")
_logger = logging.getLogger("heald.listeners")


@attrs.frozen
class Contribution(Generic[T]):
    """Something a row contributed, and whose it is."""

    value: T
    origin: RowOrigin


class Listener:
    """One listener method of a row; its failures are logged and counted, never passed on."""

    __slots__ = ("call", "failures", "origin", "spec")

    def __init__(self, spec: Spec, call: Callable[..., Any], origin: RowOrigin) -> None:
        self.spec = spec
        self.call = call
        self.origin = origin
        self.failures = 0

    def failed(self, error: BaseException) -> None:
        """Count and log that the listener raised."""
        self.failures += 1
        _logger.error(
            "listener of %s in row %s (plugin %s) failed; the others were told",
            self.spec,
            self.origin.row,
            self.origin.plugin,
            exc_info=error,
        )


Middleware: TypeAlias = Callable[..., Awaitable[Any]]
"""A bound wrap implementation: `(request, call_next)`."""


class Tables:
    """What a scope looks up, own entries before the parent's; each table is built when first read.

    A change of rows makes a new object, so whoever keeps an old one keeps what it saw.
    """

    def __init__(self, composition: Composition) -> None:
        self._rows = composition.mounted
        self._parent = composition.parent.tables if composition.parent is not None else None

    @cached_property
    def provided(self) -> Mapping[Provide[Any], Any]:
        """Services by specification, the nearest."""
        services = dict(self._parent.provided) if self._parent else {}
        for row in self._rows:
            services |= row.services
        return services

    @cached_property
    def collected(self) -> Mapping[Collect[Any], tuple[Contribution[Any], ...]]:
        """Contributions by specification; a nearer one shadows one of the same key."""
        table: dict[Collect[Any], tuple[Contribution[Any], ...]] = {}
        for row in self._rows:
            for spec, contributions in row.contributions.items():
                table[spec] = table.get(spec, ()) + contributions
        for spec, inherited in (self._parent.collected if self._parent else {}).items():
            own = table.get(spec, ())
            table[spec] = own + _unshadowed(spec, inherited, own)
        return table

    @cached_property
    def listeners(self) -> Mapping[Spec, tuple[Listener, ...]]:
        """Listeners by specification, in row order."""
        return self._by_spec(lambda row: row.listeners, lambda tables: tables.listeners)

    @cached_property
    def wraps(self) -> Mapping[Wrap[Any, Any], tuple[Middleware, ...]]:
        """Middleware by specification, outermost first."""
        return self._by_spec(lambda row: row.wraps, lambda tables: tables.wraps)

    def _by_spec(
        self,
        of_row: Callable[[MountedRow], Mapping[Any, tuple[Any, ...]]],
        of_tables: Callable[[Tables], Mapping[Any, tuple[Any, ...]]],
    ) -> dict[Any, tuple[Any, ...]]:
        table: dict[Any, tuple[Any, ...]] = {}
        sources = [of_row(row) for row in self._rows]
        if self._parent is not None:
            sources.append(of_tables(self._parent))
        for source in sources:
            for spec, entries in source.items():
                table[spec] = table.get(spec, ()) + entries
        return table


def _unshadowed(
    spec: Collect[Any],
    inherited: tuple[Contribution[Any], ...],
    nearer: tuple[Contribution[Any], ...],
) -> tuple[Contribution[Any], ...]:
    if spec.key is None:
        return inherited
    taken = {spec.key(contribution.value) for contribution in nearer}
    return tuple(c for c in inherited if spec.key(c.value) not in taken)
