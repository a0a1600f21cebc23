"""One subagent, told as far as its log, its cell or its checkpoint tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import msgspec

from heald import Scope
from heald_projection import ProjectionFaulted
from heald_session import Header, SessionId
from heald_subagent.errors import SessionNotSubagent
from heald_subagent.identity import KEY, Identity, identity_from
from heald_subagent.rows import ORIGIN, Activity
from heald_subagent.services import corpus_of
from heald_subagent.tree import Cost, as_time, costs_of

_SHOWN = {"agent_provider": "adapter"}
"""What people read instead of a field's name."""


@attrs.frozen(kw_only=True)
class Portrait:
    """What is known of one subagent."""

    header: Header
    activity: Activity
    identity: Identity | None
    """What its descriptor says, if that is its own and can be read."""
    cost: Cost

    @property
    def id(self) -> SessionId:
        """The session's id."""
        return self.header.id

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield what people read, name by name."""
        identity = {} if self.identity is None else msgspec.to_builtins(self.identity)
        yield "id", self.id
        yield "activity", self.activity
        for name in ("mode", "label", "provider", "agent_provider", "model", "persona"):
            if name in identity:
                yield _SHOWN.get(name, name), identity[name]
        if denied := identity.get("denied_tools"):
            yield "denied", ", ".join(denied)
        yield "parent", self.header.parent_session or "-"
        yield "depth", str(self.header.delegation_depth)
        yield "preset", self.header.agent_preset or "-"
        yield "cwd", self.header.cwd or "-"
        yield "worked", as_time(self.cost.ms)
        yield "tokens", "-" if self.cost.tokens is None else f"{self.cost.tokens:,}"

    def as_json(self) -> dict[str, Any]:
        """Return what programs read."""
        return {
            "header": msgspec.to_builtins(self.header),
            "activity": self.activity,
            "identity": None if self.identity is None else msgspec.to_builtins(self.identity),
            "worked_ms": self.cost.ms,
            "tokens": self.cost.tokens,
        }


async def portrait_of(scope: Scope, id: SessionId) -> Portrait:  # noqa: A002 - what it is
    """Observe one subagent.

    Raises `SessionNotSubagent`, and what an observation raises but for a descriptor that no fold
    can take: that is a subagent without an identity.
    """
    query = corpus_of(scope)
    try:
        async with query.observe_session(id, [KEY]) as seen:
            header, source = seen.header, seen.source
            identity = identity_from(seen.state(KEY), seen.inherited_event_count)
    except ProjectionFaulted:  # which leaves the header to be read by itself
        async with query.observe_session(id) as seen:
            header, source, identity = seen.header, seen.source, None
    if header.origin != ORIGIN:
        raise SessionNotSubagent(id)
    activity: Activity = "running" if source == "live" else "inactive"
    cost = (await costs_of(scope, [header])).get(id, Cost())
    return Portrait(header=header, activity=activity, identity=identity, cost=cost)
