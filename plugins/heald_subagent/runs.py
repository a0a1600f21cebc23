"""A child that is at work: its agent, and how far its present run has come."""

from __future__ import annotations

import asyncio

import attrs

from heald import CancelToken
from heald_agent import Agent
from heald_session import SessionId
from heald_subagent.contracts import ChildResult


@attrs.define(eq=False)
class Run:
    """What a child does between two settlements."""

    ended: asyncio.Future[ChildResult] = attrs.field(
        factory=lambda: asyncio.get_running_loop().create_future()
    )
    reported: bool = False
    waiting: int = 0
    """How many wait for it now."""
    cancelled: str | None = None
    """Why the parent cancelled it, if it did."""


@attrs.define(eq=False)
class Child:
    """A live continuable child."""

    agent: Agent
    label: str
    run: Run = attrs.field(factory=Run)
    sending: int = 0
    """Messages on their way to it; it cannot settle before they were accepted."""
    follower: asyncio.Task[None] | None = None

    @property
    def id(self) -> SessionId:
        """The child's session."""
        return self.agent.session.id


@attrs.frozen(eq=False)
class Errand:
    """A one-shot child on its way, and what ends it early."""

    agent: Agent
    cancel: CancelToken
