"""A row that has started, and everything it brought when it was asked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

import attrs

from heald.errors import describe
from heald.hooks import AsyncObserve, Collect, Observe, Provide, Spec, Wrap
from heald.planned import PlannedRow
from heald.plugin import Plugin
from heald.supervisor import RowFailure
from heald.tables import Contribution, Listener, Middleware

T = TypeVar("T")


@attrs.frozen(eq=False)
class MountedRow:
    """A row that is running, and what it brought."""

    planned: PlannedRow
    plugin: Plugin[Any] = attrs.field(repr=False)
    services: Mapping[Provide[Any], Any] = attrs.field(factory=dict, repr=False)
    contributions: Mapping[Collect[Any], tuple[Contribution[Any], ...]] = attrs.field(
        factory=dict, repr=False
    )
    listeners: Mapping[Spec, tuple[Listener, ...]] = attrs.field(factory=dict, repr=False)
    wraps: Mapping[Wrap[Any, Any], tuple[Middleware, ...]] = attrs.field(factory=dict, repr=False)

    @property
    def id(self) -> str:
        """The row's id."""
        return self.planned.row.id


def gather(planned: PlannedRow, plugin: Plugin[Any], others: Iterable[MountedRow]) -> MountedRow:
    """Ask a started row for everything it brings, once.

    Raises `RowFailure` if a method raises, or if a contribution has the key of one of the `others`.
    """
    services: dict[Provide[Any], Any] = {}
    collected: dict[Collect[Any], list[Contribution[Any]]] = {}
    listeners: dict[Spec, tuple[Listener, ...]] = {}
    wraps: dict[Wrap[Any, Any], tuple[Middleware, ...]] = {}
    for item in planned.shape.implementations:
        spec, method = item.spec, getattr(plugin, item.attribute)
        if isinstance(spec, Provide):
            services[spec] = _provided(spec, method)
        elif isinstance(spec, Collect):
            values = _ask("collect", partial(_all_of, method))
            own = collected.setdefault(spec, [])
            own += [Contribution(value, planned.origin) for value in values]
        elif isinstance(spec, Observe | AsyncObserve):
            listener = Listener(spec, method, planned.origin)
            listeners[spec] = (*listeners.get(spec, ()), listener)
        elif isinstance(spec, Wrap):
            wraps[spec] = (*wraps.get(spec, ()), method)
    contributions = {}
    for spec, own in collected.items():
        theirs = [c for row in others for c in row.contributions.get(spec, ())]
        contributions[spec] = _ask("collect", partial(_distinct, spec, own, theirs))
    return MountedRow(planned, plugin, services, contributions, listeners, wraps)


def _provided(spec: Provide[T], method: Callable[[], T]) -> T:
    service = _ask("provide", method)
    if service is None:
        # `find` would say that nobody provides it, and `require` that somebody does.
        raise RowFailure("provide", f"{spec} is provided as None")
    return service


def _all_of(method: Callable[[], Iterable[Any]]) -> tuple[Any, ...]:
    return tuple(method())


def _distinct(
    spec: Collect[Any], own: Iterable[Contribution[Any]], others: Iterable[Contribution[Any]]
) -> tuple[Contribution[Any], ...]:
    """Refuse a key that is taken; the same contribution twice from one row is one."""
    if spec.key is None:
        return tuple(own)
    taken = {spec.key(other.value): other for other in others}
    kept: dict[Hashable, Contribution[Any]] = {}
    for mine in own:
        key = spec.key(mine.value)
        earlier = kept.get(key)
        if earlier and (earlier.value is mine.value or earlier.value == mine.value):
            continue
        if clash := earlier or taken.get(key):
            reason = f"{spec} {key!r} of {mine.origin} is taken by {clash.origin}"
            raise RowFailure("collect", f"{reason}; rename or disable one of them")
        kept[key] = mine
    return tuple(kept.values())


def _ask(stage: str, method: Callable[[], T]) -> T:
    """Call a plugin's method, or one that runs its code, as part of a stage."""
    try:
        return method()
    except (KeyboardInterrupt, RowFailure):
        raise
    except BaseException as error:
        raise RowFailure(stage, describe(error)) from error
