"""What an agent is to everyone else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

import attrs

from heald import CancelToken, HealdError
from heald_agent.asks import Ask
from heald_agent.events import AskDecided
from heald_session import AssistantMessage, Message, Session, SessionId

T = TypeVar("T")


@attrs.frozen(eq=False)
class StateKey(Generic[T]):
    """Names typed state that a plugin keeps for each agent; compared by identity."""

    name: str
    make: Callable[[Agent, AsyncExitStack], T]
    """Make the state when first asked for; what it pushes on the stack is undone with the agent."""
    lasting: bool = False
    """Whether it stays when the agent moves to another preset, as is right for a row of the host.

    Other state is undone then, since its row may be gone."""


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


class Aside(Protocol):
    """A time between turns in which the model may be asked beside the conversation."""

    @property
    def model(self) -> str:
        """The model that is asked, as `adapter:model`."""
        ...

    async def ask(self, messages: Sequence[Message]) -> AssistantMessage:
        """Ask with the context of the last turn and these messages, and return the answer.

        What the messages are made of is in the log by then, and made durable first, so that the
        request can be made again from it. The answer is the caller's to log. Raises `Cancelled`,
        `ModelFailed`, `ModelUnknown`, `RequestChanged`, or what `Session.flush` raises.
        """
        ...


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

    def use_model(self, model: str, *, chosen: bool = True) -> None:
        """Use another model from the next step on; raises `ModelUnknown`.

        One that a person chose is logged as the session's, and holds when it is resumed.
        """
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

    async def ask(self, ask: Ask, *, cancel: CancelToken | None = None) -> AskDecided:
        """Ask a person, one ask at a time, and return what came of it once that is durable.

        Nobody being there denies it, and so does the deadline: it never waits for ever. Raises
        `Cancelled`, or what `Session.append` and `Session.flush` raise.
        """
        ...

    def aside(self) -> AbstractAsyncContextManager[Aside]:
        """Keep turns from opening for the length of a block.

        Messages are accepted meanwhile and delivered after it. Raises `AgentBusy` while a turn is
        open, so in a tool always, or `ModelNotConfigured`.
        """
        ...

    async def settled(self) -> TurnOutcome:
        """Wait until no turn or aside is open and no message is undelivered."""
        ...

    def cancel(self, cause: str) -> None:
        """End the open turn as aborted, or what the open aside asks; the first cause counts."""
        ...

    async def dispose(self) -> None:
        """Cancel what runs, undo the agent's state, and dispose of its session."""
        ...


class Agents(Protocol):
    """The agents of this process."""

    def get(self, session: SessionId) -> Agent | None:
        """Return the agent of a live session."""
        ...

    async def answer(
        self,
        session: SessionId,
        ask: str,
        outcome: Literal["answered", "approved", "denied"],
        text: str | None = None,
        *,
        by: str,
    ) -> AskDecided:
        """Decide the ask that a session has open, for the person that `by` speaks for.

        Returns when that is durable; the first answer is the one that counts. Raises `AskNotOpen`,
        or `AnswerInvalid` for what does not fit the ask.
        """
        ...

    async def create(
        self,
        *,
        cwd: Path,
        preset: str | None = None,
        model: str | None = None,
        id: SessionId | None = None,  # noqa: A002
    ) -> Agent:
        """Make a session on a preset and its agent; a model that is named is the session's choice.

        Raises what presets and the session store raise, or `ModelUnknown`; then there is no
        session.
        """
        ...

    async def resume(
        self,
        id: SessionId,  # noqa: A002
        *,
        preset: str | None = None,
        continue_as: str | None = None,
        model: str | None = None,
    ) -> Agent:
        """Resume a stored session on the preset it runs, or return its live agent.

        If that preset cannot be mounted any more it goes on with `continue_as`, which is logged;
        without that, raises `PresetGone` or `PresetInvalid`.

        Its model is the one named, which is then the session's choice, else the one chosen before,
        else the configured one, else the one it ran on last. Messages that were accepted and not
        delivered are delivered. Raises `PresetConflict` if another preset is named.
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
