"""Flat tables that a composition is compiled to, so that no call walks rows or asks pluggy."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import attrs

from heald.hooks import Collect, Provide, Spec, Wrap
from heald.rows import RowOrigin

if TYPE_CHECKING:
    from heald.composition import Composition
    from heald.mounted import MountedRow

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")
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


Collected: TypeAlias = "dict[Collect[Any], tuple[Contribution[Any], ...]]"
Listeners: TypeAlias = "dict[Spec, tuple[Listener, ...]]"
Middleware: TypeAlias = Callable[..., Awaitable[Any]]
"""A bound wrap implementation: `(request, call_next)`."""
Wraps: TypeAlias = "dict[Wrap[Any, Any], tuple[Middleware, ...]]"


class Tables:
    """What a scope looks up, own entries before the parent's.

    A change of rows makes a new object, so whoever keeps an old one keeps what it saw. It is built
    at once: rows change seldom, and a lookup is then one attribute and one dictionary away.
    """

    __slots__ = ("collected", "listeners", "provided", "wraps")

    def __init__(self, composition: Composition) -> None:
        rows = composition.mounted
        below = composition.parent.tables if composition.parent is not None else None
        self.provided: dict[Provide[Any], Any] = {**below.provided} if below else {}
        """Services by specification, the nearest."""
        for row in rows:
            self.provided |= row.services
        self.collected: Collected = _collected(rows, below.collected if below else {})
        """Contributions by specification; a nearer one shadows one of the same key."""
        inherited = (below.listeners,) if below else ()
        self.listeners: Listeners = _joined(*(row.listeners for row in rows), *inherited)
        """Listeners by specification, in row order."""
        outside = (below.wraps,) if below else ()
        self.wraps: Wraps = _joined(*(row.wraps for row in rows), *outside)
        """Middleware by specification, outermost first."""


def _joined(*sources: Mapping[K, tuple[V, ...]]) -> dict[K, tuple[V, ...]]:
    table: dict[K, tuple[V, ...]] = {}
    for source in sources:
        for spec, entries in source.items():
            table[spec] = table.get(spec, ()) + entries
    return table


def _collected(rows: Iterable[MountedRow], inherited: Collected) -> Collected:
    own = _joined(*(row.contributions for row in rows))
    return _joined(own, {spec: _unshadowed(spec, them, own) for spec, them in inherited.items()})


def _unshadowed(
    spec: Collect[Any], inherited: tuple[Contribution[Any], ...], own: Collected
) -> tuple[Contribution[Any], ...]:
    if spec.key is None or spec not in own:
        return inherited
    taken = {spec.key(contribution.value) for contribution in own[spec]}
    return tuple(c for c in inherited if spec.key(c.value) not in taken)
