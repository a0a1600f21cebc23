"""What a session and the session store are to everyone else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol

import attrs

from heald import Composition, Scope
from heald_session.conversation import Message, Shown, TurnContext
from heald_session.events import Event, NewEvent, Surface
from heald_session.header import Header
from heald_session.positions import LogOffset, Seq, SessionId


class Session(Protocol):
    """A live session: an append-only log that observers hear and a backend keeps."""

    @property
    def id(self) -> SessionId:
        """The session's id."""
        ...

    @property
    def header(self) -> Header:
        """The facts of its creation."""
        ...

    @property
    def cut(self) -> LogOffset:
        """How many events were inherited; an event is the session's own from there on."""
        ...

    @property
    def end(self) -> LogOffset:
        """The length of the log."""
        ...

    @property
    def flushed(self) -> LogOffset:
        """How much of the log is durable."""
        ...

    @property
    def not_saved(self) -> str | None:
        """Why the log is not being saved at present, or None while it is (or is kept nowhere)."""
        ...

    @property
    def scope(self) -> Scope:
        """Where everything about this session is looked up and told."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the session was disposed of."""
        ...

    def is_own(self, seq: Seq) -> bool:
        """Say whether an event is the session's own and not inherited."""
        ...

    def append(
        self,
        type: str,  # noqa: A002 - the field's name in the log
        data: Any,
        *,
        surface: Surface | None = None,
        sources: tuple[Seq, ...] | None = None,
    ) -> Event:
        """Commit an event in memory and tell observers; `flush` makes it durable.

        Raises `EventTypeUnknown`, `EventInvalid`, `DataNotJson`, `AppendRefused`,
        `AppendReentrant`, `SessionClosed`, or what storage raises when it can take no more; then
        nothing was appended.
        """
        ...

    async def flush(self) -> None:
        """Wait until everything appended so far is durable; raises if it cannot be."""
        ...

    @property
    def hot_from(self) -> LogOffset:
        """Where the part of the log that is in memory begins."""
        ...

    def hot(self, start: LogOffset | None = None) -> Sequence[Event]:
        """Return the events in memory from `start` on; raises `IndexError` before `hot_from`.

        Old events leave memory once they are durable and no `window_holders` needs them; those of a
        session that is kept nowhere stay.
        """
        ...

    def read(
        self, start: LogOffset = LogOffset(0), stop: LogOffset | None = None
    ) -> AsyncIterator[Event]:
        """Yield events of the log, from storage where they are no longer in memory.

        It ends where the log did when it began. Raises what storage raises.
        """
        ...

    def history(self) -> tuple[Message, ...]:
        """Return what the model sees: the fold of surface events, balanced for a request."""
        ...

    def surface(self) -> tuple[Shown, ...]:
        """Return the surface as the log has it, for whoever replaces a range of it."""
        ...

    def context(self) -> TurnContext | None:
        """Return the last `turn/context`, or None before the first."""
        ...


class SessionStore(Protocol):
    """The live sessions of this process, and the only way to make or resume one."""

    def get(self, id: SessionId) -> Session | None:  # noqa: A002
        """Return a live session."""
        ...

    def live(self) -> Sequence[Session]:
        """Return every live, published session in order of publication."""
        ...

    async def create(
        self,
        *,
        cwd: str | None,
        id: SessionId | None = None,  # noqa: A002
        parent_session: SessionId | None = None,
        delegation_depth: int = 0,
        origin: str | None = None,
        agent_preset: str | None = None,
        first: Sequence[NewEvent] = (),
        composition: Composition | None = None,
    ) -> Session:
        """Make and publish an empty session.

        The events `first` are in the log before anyone can see the session, and durable if it is
        kept at all. Raises `SessionIdTaken`, `SessionIdInvalid` or `HeaderInvalid`.
        """
        ...

    async def fork(
        self,
        source: SessionId,
        *,
        cut: LogOffset | None = None,
        id: SessionId | None = None,  # noqa: A002
        header: Callable[[Header], Header] | None = None,
        first: Sequence[NewEvent] = (),
        composition: Composition | None = None,
    ) -> Session:
        """Make and publish a session that starts with the first `cut` events of another.

        The source may be live or stored. Without a cut it is all of it. `header` may change the
        new session's creation facts; an ordinary fork keeps `cwd` and `delegation_depth` and has no
        `origin`. Events of a live source are made durable first, where they are kept. Raises
        `SessionNotFound`, `CutInvalid`, `LogNeedsPlugin`, or what the storage raises.
        """
        ...

    async def fork_stored(
        self,
        source: SessionId,
        *,
        cut: LogOffset | None = None,
        id: SessionId | None = None,  # noqa: A002
    ) -> Header:
        """Store a fork without making it live, which does not read the log, however long it is.

        The source may be live or stored, and the cut must leave events. What is not understood of
        them is found when the fork is resumed. Raises like `fork`, and `ServiceAbsent` if sessions
        are kept nowhere.
        """
        ...

    async def resume(
        self,
        id: SessionId,  # noqa: A002
        *,
        composition: Composition | None = None,
    ) -> Session:
        """Load a stored session, repair its tail by ordinary appends, and publish it.

        Returns the live one if it is live. Raises `SessionNotFound`, `LogNeedsPlugin`, or what the
        storage raises.
        """
        ...

    async def dispose(self, session: Session) -> None:
        """Flush a session and take it out of the store; observers hear `session_closed`.

        If it cannot be saved at present, it stays live and `SessionNotSaved` is raised.
        """
        ...


@attrs.frozen
class Proposal:
    """An event that is about to be appended."""

    session: Session
    event: NewEvent


@attrs.frozen
class AppendGuard:
    """Looks at events before they are committed."""

    check: Callable[[Proposal], None]
    """Refuse the event by raising; what it says is the reason that is told."""
    types: frozenset[str] | None = None
    """Which types are looked at, by their present names; None is every type.

    Name them where you can: for each event that is looked at, its data is copied."""


WindowHolder = Callable[[Session], LogOffset | None]
"""Returns the lowest offset from which events of a session are still needed, None if none is."""
