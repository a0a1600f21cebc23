"""What a storage backend is to everyone else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Literal, Protocol, Self

import attrs

from heald import CancelToken
from heald_session import Event, Header, LogOffset, SessionId


@attrs.frozen
class StoredSession:
    """One stored session in a list; a broken one has a problem instead of a header."""

    name: str
    """The session's id if it is known, else the name of what was found in its place."""
    header: Header | None
    cut: LogOffset | None = None
    problem: str | None = None
    stamp: str | None = attrs.field(default=None, eq=False)
    """What a later `survey` is to compare with; None if it must look again."""


@attrs.frozen
class Survey:
    """What is stored, compared with what somebody remembers of it."""

    changed: tuple[StoredSession, ...]
    """Those that were not remembered, or not like this."""
    gone: frozenset[str]
    """Names that were remembered and are not stored any more."""


@attrs.frozen(kw_only=True)
class Damage:
    """A part of a stored log that cannot be read, or should not be there."""

    kind: Literal["frame", "zone_map", "line", "tail_header", "header", "missing", "blob"]
    file: str
    """The file it is in, relative to the session's place."""
    offset: int
    """Where in the file it begins, in bytes."""
    first: LogOffset
    """Where in the log it begins, as far as what surrounds it tells."""
    count: int | None
    """How many events are lost; 0 if none is, None if that cannot be told."""
    types: frozenset[str] | None
    """Which types of event it may have held; None is any."""
    reason: str


class StoredLog(Protocol):
    """A stored session opened for reading, as it was at one moment; takes no lock.

    Use it as an async context manager, so that what it holds open is let go.
    """

    @property
    def header(self) -> Header:
        """The facts of the session's creation."""
        ...

    @property
    def cut(self) -> LogOffset:
        """How many events were inherited."""
        ...

    @property
    def end(self) -> LogOffset:
        """The length of the log when it was opened."""
        ...

    @property
    def bytes_read(self) -> int:
        """How many bytes of log were read so far."""
        ...

    @property
    def frames_decoded(self) -> int:
        """How many blocks of events were decoded so far; the unsealed tail is one."""
        ...

    def batches(
        self,
        start: LogOffset = LogOffset(0),
        stop: LogOffset | None = None,
        *,
        types: Collection[str] | None = None,
        on_damage: Callable[[Damage], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> AsyncIterator[Sequence[Event]]:
        """Yield events of the range in order, in batches of the backend's choice.

        With `types`, only events of these types, reading no more than holds them. Damage that may
        have held a wanted event raises `SessionDamaged`; with `on_damage` it is told of instead, in
        its place between the batches, and reading goes on behind it.
        """
        ...

    async def settle(self) -> None:
        """Make durable what was read, which its writer may not have done yet.

        Whoever keeps what follows from the events calls it before keeping that. Raises
        `StorageUnavailable`.
        """
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class LogWriter(Protocol):
    """The one handle that may write a session, for as long as it is open."""

    @property
    def flushed(self) -> LogOffset:
        """How many events are durable."""
        ...

    @property
    def not_saved(self) -> str | None:
        """Why writing fails at present, or None."""
        ...

    def append(self, events: Sequence[Event]) -> None:
        """Queue events that continue the log.

        Raises `SessionNotSaved` when the queue is full, `LogChanged`, or `EventInvalid` for data
        that is larger than the backend can keep; then none was queued.
        """
        ...

    async def flush(self) -> None:
        """Wait until everything queued so far is durable.

        Raises `SessionNotSaved` or `LogChanged`, or for a new session `SessionIdTaken` if another
        process was first; then the events stay queued.
        """
        ...

    async def close(self) -> None:
        """Flush what can be flushed and let the session go."""
        ...

    async def discard(self) -> None:
        """Let the session go without storing what is queued: nobody ever saw it."""
        ...


class SessionPersistence(Protocol):
    """Keeps session logs; `heald_persistence.testing` has the suite a backend must pass."""

    @property
    def outlives_process(self) -> bool:
        """Whether the logs outlive the process; where they do not, nothing that follows may."""
        ...

    async def list(self, *, cancel: CancelToken | None = None) -> Sequence[StoredSession]:
        """List every stored session, a broken one with its problem; reads no events."""
        ...

    async def survey(
        self, known: Mapping[str, str], *, logs: bool = False, cancel: CancelToken | None = None
    ) -> Survey:
        """Compare what is stored with remembered stamps by name, reading only what differs.

        A stamp is opaque, and `StoredSession.stamp` of an earlier survey, also of another process;
        what has none is remembered by an empty text. It differs when another session, or another
        state of the same header, is in the place; with `logs` also when the log has grown. The
        stamps of the two kinds are not to be mixed. Costs one look at each session.
        """
        ...

    async def read(
        self,
        id: SessionId,  # noqa: A002
        *,
        ahead: Collection[str] | None = None,
        cancel: CancelToken | None = None,
    ) -> StoredLog:
        """Open a stored session for reading.

        `ahead` says that `batches` will be asked for events of these types from the first on: a
        backend that can reads them in the same step. Raises `SessionNotFound`, `SessionDamaged`,
        `FormatTooNew` or `StorageUnavailable`.
        """
        ...

    async def create(self, header: Header, cut: LogOffset) -> LogWriter:
        """Take a new session's place; nothing is stored until the first events are.

        Those appended before the first `flush` are stored all together or not at all. Raises
        `SessionIdTaken`.
        """
        ...

    async def fork(self, source: SessionId, cut: LogOffset, header: Header) -> LogWriter:
        """Take a new session's place, to begin with the first `cut` events of a stored one.

        Those events must be durable in the source, which may have a writer. The writer appends from
        `cut` on. Its first `flush`, even with nothing queued, stores the inherited events and those
        appended before all together or not at all; until then nothing is stored and `flushed` is 0.
        A cut of 0 is what `create` does. Raises `SessionIdTaken`, `SessionNotFound`,
        `SessionDamaged` or `FormatTooNew`.
        """
        ...

    async def open(self, id: SessionId) -> LogWriter:  # noqa: A002
        """Take a stored session to go on writing it, after its last whole event.

        Raises `SessionNotFound`, `SessionBusy`, `SessionDamaged` or `FormatTooNew`.
        """
        ...

    async def verify(
        self,
        id: SessionId,  # noqa: A002
        *,
        cancel: CancelToken | None = None,
    ) -> Sequence[Damage]:
        """Read all of a stored session and return what is wrong with it; changes nothing."""
        ...

    async def salvage(self, id: SessionId) -> Sequence[Damage]:  # noqa: A002
        """Make a damaged session writable again from what can be read of it.

        What is replaced is kept beside it. Returns what was wrong. Raises `SessionBusy`.
        """
        ...

    async def delete(self, id: SessionId) -> None:  # noqa: A002
        """Move a stored session to the trash. Raises `SessionNotFound` or `SessionBusy`."""
        ...

    async def restore(self, id: SessionId) -> None:  # noqa: A002
        """Bring back the session that was deleted last under this id.

        Raises `SessionNotFound`, or `SessionIdTaken` if the place is occupied.
        """
        ...

    async def trashed(self) -> Sequence[StoredSession]:
        """List what `restore` could bring back, latest first."""
        ...


async def last_before(
    read: Callable[[LogOffset, LogOffset], AsyncIterator[Event | Sequence[Event]]],
    offset: LogOffset,
) -> Event | None:
    """Return the last event before an offset of a log, if there is one and it can be read.

    `read` is a session's `read`, a stored log's `batches`, or what gives events like them.
    """
    last: Event | None = None
    if offset:
        async for found in read(LogOffset(offset - 1), offset):
            last = found if isinstance(found, Event) else found[-1]
    return last
