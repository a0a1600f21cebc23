"""Which rows each row needs, and the order of mounting that follows from it."""

from __future__ import annotations

import graphlib
import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from heald.discovery import Discovery
from heald.faults import FailedRow, Fault
from heald.hooks import Provide
from heald.planned import PlannedRow
from heald.shape import shape_of


def resolve(
    planned: Sequence[PlannedRow],
    provided: Collection[Provide[Any]],
    failed: Iterable[FailedRow],
    discovery: Discovery,
) -> tuple[dict[str, tuple[str, ...]], list[FailedRow], list[Fault]]:
    """Find for each row the rows it needs; what the composition below provides needs no row.

    Returns them by row id, the rows that cannot run, and faults.

    A requirement that nobody meets is a fault, unless a failed row would have met it, or might have
    because its plugin did not import: then the row that requires it is a failed row too.
    """
    providers: dict[Provide[Any], PlannedRow] = {}
    faults = []
    for item in planned:
        for spec in item.shape.provides:
            first = providers.setdefault(spec, item)
            if first is not item:
                other = f"row {first.row.id} ({first.row.plugin}, {first.row.layer})"
                message = f"provides {spec}, and so does {other}; disable one of them"
                faults.append(item.fault("SERVICE_CONFLICT", message))
    absent = _Absent(failed, discovery)
    needs: dict[str, tuple[str, ...]] = {}
    unmet = []
    for item in planned:
        needed: dict[str, None] = {}
        for spec in item.shape.requires:
            provider = providers.get(spec)
            if spec in provided and (provider is None or provider is item):
                continue  # a row that replaces a service may require the one it replaces
            if provider is not None:
                needed[provider.row.id] = None
            elif because := absent.because_of(spec):
                reason = f"{spec} is not provided; these rows failed: {', '.join(because)}"
                unmet.append(item.failed("requires", reason, because))
                break
            else:
                faults.append(item.fault("REQUIREMENT_UNMET", absent.remedy(spec)))
        needs[item.row.id] = tuple(needed)
    return needs, unmet, faults


class _Absent:
    """Why a service may be absent."""

    def __init__(self, failed: Iterable[FailedRow], discovery: Discovery) -> None:
        self._discovery = discovery
        self._would_provide: dict[Provide[Any], tuple[str, ...]] = {}
        self._not_imported: tuple[str, ...] = ()
        for row in failed:
            try:
                cls = discovery.plugin_class(row.plugin)
            except ImportError:
                self._not_imported += (row.row,)
                continue
            for spec in shape_of(cls).provides:
                self._would_provide[spec] = (*self._would_provide.get(spec, ()), row.row)

    def because_of(self, spec: Provide[Any]) -> tuple[str, ...]:
        """Return the failed rows that would or could have provided it."""
        return self._would_provide.get(spec, self._not_imported)

    def remedy(self, spec: Provide[Any]) -> str:
        owner = self._discovery.owner_of(spec.owner)
        wanted = f"plugin {owner!r}" if owner else f"a plugin that provides it ({spec.owner})"
        return f"requires {spec}; add or enable a row of {wanted}"


def in_order(
    planned: Sequence[PlannedRow], needs: Mapping[str, tuple[str, ...]]
) -> tuple[list[PlannedRow], list[Fault]]:
    """Move rows that come by place so that each is after those it needs; report every cycle."""
    if not any(needs.values()):
        return list(planned), []
    by_id = {item.row.id: item for item in planned}
    # Lists, not sets: what graphlib finds first must not depend on how strings hash today.
    graph = {id_: [need for need in needs[id_] if need in by_id] for id_ in by_id}
    faults = []
    while cycle := _cycle(graph):
        first = cycle.index(min(cycle, key=lambda id_: by_id[id_].place))
        cycle = [*cycle[first:], *cycle[:first]]
        message = f"these rows need each other: {' needs '.join([*cycle, cycle[0]])}"
        faults.append(by_id[cycle[0]].fault("REQUIREMENT_CYCLE", message))
        graph = {
            id_: [need for need in needed if need not in cycle]
            for id_, needed in graph.items()
            if id_ not in cycle
        }
    sorter = graphlib.TopologicalSorter(graph)
    sorter.prepare()
    ready: list[tuple[int, str]] = []
    ordered = []
    while sorter.is_active():
        for id_ in sorter.get_ready():
            heapq.heappush(ready, (by_id[id_].place, id_))
        _, id_ = heapq.heappop(ready)
        ordered.append(by_id[id_])
        sorter.done(id_)
    return ordered, faults


def _cycle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the rows of one cycle, each before the one it needs; empty if there is none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle[:0:-1]
    return []
