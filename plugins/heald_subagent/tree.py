"""A tree of agents for people: who works for whom, how long, and for how many tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import msgspec

from heald import Scope
from heald_session import Header, SessionId
from heald_subagent.listing import Listing
from heald_subagent.rows import Activity, ChildRow, SubagentRow
from heald_subagent.services import corpus_of

KEYS = ("subagentTiming", "tokenUsage")
_DRAWN = 20
"""How many levels are drawn as such; deeper ones say their depth."""


@attrs.frozen
class Cost:
    """What an agent took itself, as far as its cell or its checkpoint tells, else None.

    What it inherited was taken by somebody else, and is told there.
    """

    ms: int | None = None
    tokens: int | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Cost:
        """Take the cost out of projection values."""
        timing, usage = values.get("subagentTiming"), values.get("tokenUsage")
        return cls(
            None if timing is None else _worked(timing),
            None if usage is None else _asked(usage) - _asked(usage["inherited"]),
        )

    @classmethod
    def sum(cls, costs: Iterable[Cost]) -> Cost:
        """Add up what is known; None where nothing is."""
        costs = tuple(costs)
        known = [cost.ms for cost in costs if cost.ms is not None]
        counted = [cost.tokens for cost in costs if cost.tokens is not None]
        return cls(sum(known) if known else None, sum(counted) if counted else None)


@attrs.frozen
class Agents:
    """The agents below a session at one moment, parents first, and what each took."""

    rows: Sequence[SubagentRow]
    costs: Mapping[SessionId, Cost]

    @property
    def total(self) -> Cost:
        """What all of them took together."""
        return Cost.sum(self.cost(row) for row in self.rows)

    @property
    def unknown(self) -> int:
        """Of how many of them neither time nor tokens are known."""
        return sum(self.cost(row) == Cost() for row in self.rows)

    def cost(self, row: SubagentRow) -> Cost:
        """Return what one agent took."""
        return self.costs.get(row.id, Cost())

    def only(self, activity: Activity | None) -> Agents:
        """Return those of one activity; what cannot be told is neither."""
        if activity is None:
            return self
        rows = [row for row in self.rows if isinstance(row, ChildRow) and row.activity == activity]
        return Agents(rows, self.costs)

    def behind(self, id: SessionId) -> Agents:  # noqa: A002 - what it is
        """Return those that come after one of them; raises `ValueError` if it is none."""
        place = [row.id for row in self.rows].index(id)
        return Agents(self.rows[place + 1 :], self.costs)


async def agents_below(scope: Scope, root: SessionId) -> Agents:
    """List the agents below a session, and take what they took from cells and checkpoints."""
    listed = await Listing(scope).tree(root)
    costs = await costs_of(scope, [header for header, _ in listed])
    return Agents([row for _, row in listed], costs)


async def costs_of(scope: Scope, headers: Iterable[Header]) -> Mapping[SessionId, Cost]:
    """Return what sessions took as far as cells and checkpoints tell, reading no log."""
    known = await corpus_of(scope).known_values(headers, KEYS)
    return {id_: Cost.of(snapshot.values) for id_, snapshot in known.items()}


def line_of(row: SubagentRow, cost: Cost) -> str:
    """Return an agent's line."""
    depth = row.depth or 1
    indent = "  " * min(depth - 1, _DRAWN) + (f"[{depth}] " if depth > _DRAWN else "")
    if not isinstance(row, ChildRow):
        return f"{indent}{row.id}  {row.reason}"
    label = f"  {row.label}" if row.label else ""
    return f"{indent}{row.id}  {row.activity}  {row.mode}{label}  {told(cost)}"


def told(cost: Cost) -> str:
    """Return time and tokens; `-` is not known."""
    tokens = "-" if cost.tokens is None else f"{cost.tokens:,}"
    return f"{as_time(cost.ms)}  {tokens} tokens"


def object_of(row: SubagentRow, cost: Cost) -> dict[str, object]:
    """Return an agent for programs."""
    return {**msgspec.to_builtins(row), "worked_ms": cost.ms, "tokens": cost.tokens}


def _worked(timing: Mapping[str, Any]) -> int:
    active = timing.get("active")
    running = 0 if active is None else max(0, active["through"] - active["started_at"])
    return int(timing["settled_ms"]) + running


def _asked(tokens: Mapping[str, Any]) -> int:
    return int(tokens["input_tokens"] + tokens["output_tokens"])


def as_time(ms: int | None) -> str:
    """Return how long something took; `-` is not known."""
    if ms is None:
        return "-"
    seconds = ms / 1000
    if seconds < 60:  # noqa: PLR2004 - seconds in a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
