"""What an agent is to everyone else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

import attrs

from heald import HealdError
from heald_session import Session, SessionId

T = TypeVar("T")


@attrs.frozen(eq=False)
class StateKey(Generic[T]):
    """Names typed state that a plugin keeps for each agent; compared by identity."""

    name: str
    make: Callable[[Agent, AsyncExitStack], T]
    """Make the state when first asked for; what it pushes on the stack is undone with the agent."""


@attrs.frozen
class TurnOutcome:
    """How the last turn ended."""

    turn: int
    """0 when no turn ran yet."""
    outcome: Literal["completed", "aborted", "failed"]
    text: str
    """The text of the turn's last assistant message."""
    cause: str | None = None
    error: HealdError | None = None


class Agent(Protocol):
    """What runs a session's turns."""

    @property
    def session(self) -> Session:
        """The session whose log the agent writes."""
        ...

    @property
    def model(self) -> str | None:
        """The model of the next step, as `adapter:model`."""
        ...

    @property
    def running(self) -> bool:
        """Whether a turn is open."""
        ...

    @property
    def denied_tools(self) -> frozenset[str]:
        """Tools the agent does not have though its rows contribute them."""
        ...

    def use_model(self, model: str) -> None:
        """Use another model from the next step on; raises `ModelUnknown`."""
        ...

    def state(self, key: StateKey[T]) -> T:
        """Return this agent's state of a kind, made when first asked for."""
        ...

    async def send(
        self,
        text: str,
        *,
        lane: Literal["queued", "steer"] = "queued",
        sender: SessionId | None = None,
    ) -> str:
        """Accept a message: it is durable when this returns its id, and is delivered once.

        Raises what `Session.flush` raises, or `ModelNotConfigured`.
        """
        ...

    async def settled(self) -> TurnOutcome:
        """Wait until no turn is open and no message is undelivered."""
        ...

    def cancel(self, cause: str) -> None:
        """End the open turn as aborted, if one is; the first cause is recorded."""
        ...

    async def dispose(self) -> None:
        """Cancel what runs, undo the agent's state, and dispose of its session."""
        ...


class Agents(Protocol):
    """The agents of this process."""

    def get(self, session: SessionId) -> Agent | None:
        """Return the agent of a live session."""
        ...

    async def create(
        self,
        *,
        cwd: Path,
        preset: str | None = None,
        model: str | None = None,
        id: SessionId | None = None,  # noqa: A002
    ) -> Agent:
        """Make a session on a preset and its agent.

        Raises what presets and the session store raise, or `ModelUnknown`; then there is no
        session.
        """
        ...

    async def resume(
        self,
        id: SessionId,  # noqa: A002
        *,
        preset: str | None = None,
        model: str | None = None,
    ) -> Agent:
        """Resume a stored session on the preset it runs, or return its live agent.

        Messages that were accepted and not delivered are delivered. Raises `PresetConflict` if
        another preset is named.
        """
        ...

    async def attach(
        self,
        session: Session,
        *,
        model: str | None = None,
        denied_tools: frozenset[str] = frozenset(),
        persona: str | None = None,
    ) -> Agent:
        """Give a live session an agent; its scope is what it runs on. Raises `AgentExists`.

        Messages that were accepted and not delivered are delivered, if there is a model.
        `persona`, if given, stands before the prompt sections of its rows.
        """
        ...
