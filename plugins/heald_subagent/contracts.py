"""What subagents are to everyone else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import attrs

from heald import CancelToken
from heald_agent import Agent
from heald_session import SessionId
from heald_subagent.rows import SubagentRow


@attrs.frozen(kw_only=True)
class Delegation:
    """What a parent hands to a child."""

    task: str
    label: str | None = None
    preset: str | None = None
    """Another preset than the parent's exact composition."""
    model: str | None = None
    persona: str | None = None
    denied_tools: frozenset[str] = frozenset()
    """Added to the parent's denials, which always hold."""


@attrs.frozen(kw_only=True)
class ChildResult:
    """How a child's work ended."""

    id: SessionId
    outcome: Literal["completed", "aborted", "failed", "running"]
    """`running` only where the one who waited gave up first."""
    text: str
    """The closing message, or why there is none."""


class Subagents(Protocol):
    """Delegation: children as ordinary sessions, run, addressed and listed."""

    async def run_one_shot(
        self, parent: Agent, delegation: Delegation, *, cancel: CancelToken | None = None
    ) -> ChildResult:
        """Run a child to its end and return its result; the child is disposed on every path.

        When `cancel` fires the child is ended and reported as aborted. Raises `SubagentLimit`,
        `SubagentUnauthorized`, `DelegationInvalid`, or what presets, models and the session store
        raise; then there is no child.
        """
        ...

    async def start(self, parent: Agent, delegation: Delegation) -> SessionId:
        """Start a continuable child and return its id once it has accepted the task.

        The label is required. Each time the child settles the parent is told once, by a message,
        unless a `wait` returned that settlement before: the message is sent when nobody waits for
        the child and no turn of the parent is open. Raises as `run_one_shot` does.
        """
        ...

    async def send(self, parent: Agent, child: SessionId, text: str) -> None:
        """Send a message to a continuable child, resuming it if it is cold.

        Raises `SubagentUnauthorized`, `SubagentNotContinuable`, `SubagentLimit` or
        `SessionNotFound`.
        """
        ...

    async def wait(
        self,
        parent: Agent,
        children: Sequence[SessionId] = (),
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - a caller's limit that is no error
        cancel: CancelToken | None = None,
    ) -> Sequence[ChildResult]:
        """Wait until the named live children, or all of them, are settled; at most `timeout` s.

        One that is not settled by then is returned as running. Raises `SubagentNotLive`,
        `SubagentUnauthorized` or `Cancelled`.
        """
        ...

    async def list_children(
        self, parent_id: SessionId, *, cancel: CancelToken | None = None
    ) -> Sequence[SubagentRow]:
        """List the direct children of a session, which need not exist or be live.

        Raises `SubagentProjectionsUnavailable`, `SubagentSessionStoreUnavailable`,
        `SubagentQueryUnavailable`, `Cancelled`, or what the corpus raises.
        """
        ...

    async def list_descendants(
        self, root_id: SessionId, *, cancel: CancelToken | None = None
    ) -> Sequence[SubagentRow]:
        """List the whole tree below a session, parents first; raises as `list_children`."""
        ...
