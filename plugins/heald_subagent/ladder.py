"""Takes one child's identity: from its live cell, else a checkpoint, else one cold read.

It stops at the first that answers and keeps nothing. No event is read here: what a descriptor means
is the `subagent` projection's to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import attrs

from heald import CancelToken, Scope, raise_if_cancelled
from heald_projection import ProjectionFaulted, projections
from heald_projection_cache import projection_cache
from heald_query import session_query
from heald_session import Header, LogOffset
from heald_subagent.identity import KEY, IdentityView, own_view

WITNESS = (
    "version",
    "id",
    "log_id",
    "created_at",
    "cwd",
    "parent_session",
    "is_seeded",
    "delegation_depth",
    "origin",
    "agent_preset",
)
"""The creation facts that must not differ between the enumeration and a later read."""

Finding = IdentityView | Literal["corrupt", "unavailable"] | None
"""An identity, why there is none, or None for a child that is still being created."""


@attrs.frozen
class Ladder:
    """Takes identities for one listing."""

    scope: Scope
    cancel: CancelToken | None

    def live(self, sessions: Sequence[Any]) -> list[Finding]:
        """Take live children's identities from their cells, in the step that found them live."""
        service = self.scope.find(projections)
        if service is None:
            return ["unavailable"] * len(sessions)
        found: list[Finding] = []
        for session in sessions:
            try:
                values = service.snapshot(session, [KEY]).values
                found.append(own_view(values.get(KEY), session.cut))
            except ProjectionFaulted as fault:
                found.append(_of_fault(fault))
            except Exception:  # noqa: BLE001 - one that cannot be read must not hide the others
                found.append("unavailable")
        return found

    async def cold(self, header: Header) -> Finding:
        """Take a cold child's identity, reading its log only if no checkpoint can tell."""
        self._check_wanted()
        if not header.is_seeded:
            identity = await self._cached(header)
            self._check_wanted()
            if identity is not None:
                return identity
        finding = await self._observed(header)
        self._check_wanted()
        return finding

    def _check_wanted(self) -> None:
        """Go no further once somebody cancelled, also if a read made something else of that.

        What tells is that the task was asked to end: a read may raise the same by itself.
        """
        raise_if_cancelled(self.cancel)
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError

    async def _cached(self, header: Header) -> IdentityView | None:
        """Ask the checkpoints, whose failures decide nothing.

        Only for a child that inherited nothing: whatever it has is its own.
        """
        cut = LogOffset(0)
        try:
            cache = self.scope.find(projection_cache)
            if cache is None:
                return None
            snapshot = await cache.cached_snapshot(header, cut, [KEY], cancel=self.cancel)
            return None if snapshot is None else own_view(snapshot.values.get(KEY), cut)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - derived; the log has the answer
            return None

    async def _observed(self, header: Header) -> Finding:
        """Read the log once, and believe it only if it is still the log that was enumerated."""
        try:
            query = self.scope.require(session_query)
            async with query.observe_session(header.id, [KEY], cancel=self.cancel) as seen:
                if not same_lifecycle(header, seen.header):
                    return "corrupt"
                identity = own_view(seen.projections.values.get(KEY), seen.inherited_event_count)
                if identity is not None:
                    return identity
                return None if seen.source == "live" else "corrupt"
        except ProjectionFaulted as fault:
            return _of_fault(fault)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - the next listing tries again
            return "unavailable"


def same_lifecycle(enumerated: Header, observed: Header) -> bool:
    """Say whether two headers are of one session, and not of two that had its id in turn."""
    return all(getattr(enumerated, fact) == getattr(observed, fact) for fact in WITNESS)


def _of_fault(fault: ProjectionFaulted) -> Literal["corrupt", "unavailable"]:
    return "corrupt" if fault.key == KEY else "unavailable"
