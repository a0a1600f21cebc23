"""The corpus: every live and stored session, and the one cold read of any of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

import attrs

from heald import CancelToken
from heald_projection import Snapshot
from heald_session import Event, Header, LogOffset, SessionId


@attrs.frozen
class SessionRecord:
    """One session in a list."""

    id: SessionId
    header: Header | None
    """Absent for a stored session that cannot be read; `problem` says why."""
    live: bool
    stored: bool
    problem: str | None = None
    projections: Snapshot | None = None
    """Values of the keys that were asked for, where they are known without reading a log."""


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
        *,
        keys: Collection[str] = (),
        cancel: CancelToken | None = None,
    ) -> Sequence[SessionRecord]:
        """Return every session of one snapshot, unfiltered, reading no event.

        `keys` names projections to have beside each: live from cells, cold from checkpoints.
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
