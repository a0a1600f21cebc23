"""The corpus: every live and stored session, and the one cold read of any of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

import attrs
import msgspec

from heald import CancelToken
from heald_persistence import Damage
from heald_projection import Snapshot
from heald_query.search.contracts import SearchFilter, SearchPage
from heald_session import Event, Header, LogOffset, SessionId

Order = Literal["created", "-created", "-activity"]
"""Oldest first, newest first, or last active first."""


@attrs.frozen(order=True)
class Position:
    """Where a session stands in the order of creation: it never moves, so paging is by it."""

    created_at: int
    """Milliseconds since the epoch; of a session without a readable header, `UNKNOWN`."""
    id: SessionId

    UNKNOWN = 2**63 - 1

    def __str__(self) -> str:
        return f"{self.created_at}.{self.id}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read what `str` made; raises `ValueError`."""
        created_at, dot, id_ = text.partition(".")
        if not dot or not id_ or not created_at.removeprefix("-").isdecimal():
            raise ValueError(f"{text!r} is not a position in a list of sessions")
        return cls(int(created_at), SessionId(id_))


@attrs.frozen(kw_only=True)
class SessionFilter:
    """Which sessions of the corpus: all conditions that are set hold; the default is every one."""

    subagents: bool | None = None
    """Only sessions of subagents, or none of them."""
    parent_session: SessionId | None = None
    cwd: str | None = None
    """Sessions of this working directory or of one below it."""
    preset: str | None = None
    """Sessions that run this preset, as the `agentPreset` projection or else the header says."""
    live: bool | None = None
    created_from: int | None = None
    """Created at or after, in milliseconds since the epoch."""
    created_before: int | None = None


class SessionRecord(msgspec.Struct, frozen=True, gc=False):
    """One session in a list; a struct, since lists of thousands are made of them."""

    id: SessionId
    header: Header | None
    """Absent for a stored session that cannot be read; `problem` says why."""
    live: bool
    stored: bool
    problem: str | None = None
    projections: Snapshot | None = None
    """Values of the keys that were asked for, where they are known without reading a log."""

    @property
    def position(self) -> Position:
        """Where the session stands in the order of creation."""
        created_at = Position.UNKNOWN if self.header is None else self.header.created_at
        return Position(created_at, self.id)


@attrs.frozen
class EventWindow:
    """Some events of one session, as they are in its log."""

    header: Header
    end: LogOffset
    """The length of the log."""
    start: LogOffset
    """Where the window begins; it is contiguous from there unless types were selected."""
    stop: LogOffset
    items: tuple[Event | Damage, ...]
    """The events, and damage in the place of those that cannot be read."""


@attrs.frozen
class Relatives:
    """What a session came of and what came of it, each session once."""

    ancestors: tuple[SessionRecord, ...]
    """The parent first; it ends where there is none, where one is not here, or in a circle."""
    missing: SessionId | None
    """The ancestor that is named and not here, if that is why it ends."""
    descendants: tuple[SessionRecord, ...]
    """Parents before their children."""


class Observation(Protocol):
    """One session read at one cut, live or stored."""

    @property
    def header(self) -> Header:
        """The header as it was read."""
        ...

    @property
    def inherited_event_count(self) -> LogOffset:
        """The exact cut."""
        ...

    @property
    def end(self) -> LogOffset:
        """How many events are before the cut of this observation."""
        ...

    @property
    def source(self) -> Literal["live", "stored"]:
        """Where it was read."""
        ...

    @property
    def projections(self) -> Snapshot:
        """Views of the selected keys at the end."""
        ...

    def state(self, key: str) -> Any:
        """Return the host state of a selected key at the end."""
        ...

    def events(
        self, start: LogOffset = LogOffset(0), stop: LogOffset | None = None
    ) -> AsyncIterator[Event]:
        """Yield events up to the end, read when asked for."""
        ...


class SessionQuery(Protocol):
    """Finds and reads sessions, live preferred over stored, id by id."""

    async def list_sessions(
        self,
        where: SessionFilter | None = None,
        *,
        order: Order = "created",
        limit: int | None = None,
        after: Position | None = None,
        keys: Collection[str] = (),
        cancel: CancelToken | None = None,
    ) -> Sequence[SessionRecord]:
        """Return sessions of one snapshot, reading no event; without arguments every one.

        `keys` names projections to have beside each: live from cells, cold from checkpoints.
        Sessions without a readable header come last. A page is what follows `after`, the
        `SessionRecord.position` of the last one shown: it need not exist any more, and nothing that
        happens meanwhile shows a session twice or leaves out one that was there all along. That
        holds for orders by creation; `-activity` moves, so `after` with it raises `ValueError`.
        """
        ...

    async def known_values(
        self,
        headers: Iterable[Header],
        keys: Collection[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Mapping[SessionId, Snapshot]:
        """Return the projections of sessions that a list has shown, as a list has them beside each.

        Live from cells, cold from checkpoints; no event is read, and storage is not asked again
        what there is. Sessions of which nothing is known are absent.
        """
        ...

    def observe_session(
        self,
        id: SessionId,  # noqa: A002
        keys: Collection[str] = (),
        *,
        at: LogOffset | None = None,
        cancel: CancelToken | None = None,
    ) -> AbstractAsyncContextManager[Observation]:
        """Read one session: header, cut, lazy events and projections at one cut.

        `at` is the offset to fold up to; without it the log's end. Raises `SessionNotFound`,
        `SessionDamaged`, `FormatTooNew`, `OffsetBeyondEnd`, `Cancelled`, or on entering what a
        selected projection raises when it is read.
        """
        ...

    async def read_window(
        self,
        id: SessionId,  # noqa: A002
        start: LogOffset,
        stop: LogOffset,
        *,
        types: Collection[str] = (),
        cancel: CancelToken | None = None,
    ) -> EventWindow:
        """Read the events from `start` to `stop`, as far as there are any, damage in its place.

        Raises like `observe_session` for what prevents reading as a whole.
        """
        ...

    async def relatives(
        self,
        id: SessionId,  # noqa: A002
        *,
        keys: Collection[str] = (),
        cancel: CancelToken | None = None,
    ) -> Relatives:
        """Trace a session's lineage; raises `SessionNotFound` if no record has the id."""
        ...

    async def search(
        self,
        text: str,
        where: SearchFilter | None = None,
        *,
        limit: int = 20,
        on_progress: Callable[[int, int], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> SearchPage:
        """Find what people, models and tools wrote, the best hit first.

        First indexes what was logged since the last search; `on_progress` hears how many of how
        many sessions are done. No text that people type is an error; without words it finds none.
        """
        ...
