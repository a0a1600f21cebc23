"""Where a fork's first events come from: a stored log, or a live session's memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

import attrs

from heald_session.events import Event
from heald_session.header import Header
from heald_session.live import LiveSession
from heald_session.positions import LogOffset

_BATCH: Final = 1000


class Origin(Protocol):
    """The log that a fork begins with; a `StoredLog` is one."""

    @property
    def header(self) -> Header:
        """The header of the source."""
        ...

    @property
    def end(self) -> LogOffset:
        """The length of the source."""
        ...

    def batches(
        self, start: LogOffset = LogOffset(0), stop: LogOffset | None = None
    ) -> AsyncIterator[Sequence[Event]]:
        """Yield events of the range in order."""
        ...


@attrs.frozen
class LiveOrigin:
    """A live session as it was when it was to be forked."""

    _session: LiveSession
    end: LogOffset

    @property
    def header(self) -> Header:
        """The header of the session."""
        return self._session.header

    async def batches(
        self, start: LogOffset = LogOffset(0), stop: LogOffset | None = None
    ) -> AsyncIterator[Sequence[Event]]:
        """Yield events of the range in order."""
        batch: list[Event] = []
        async for event in self._session.read(start, self.end if stop is None else stop):
            batch.append(event)
            if len(batch) == _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch
