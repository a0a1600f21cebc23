"""Observations: one session at one cut, read from memory or from storage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

import attrs

from heald import CancelToken, raise_if_cancelled
from heald_persistence import StoredLog
from heald_projection import Snapshot
from heald_session import Event, Header, LogOffset, Session


@attrs.frozen(eq=False)
class LiveObservation:
    """A live session as it was when it was observed, though its log goes on."""

    _session: Session
    end: LogOffset
    projections: Snapshot
    _states: Mapping[str, Any]
    _cancel: CancelToken | None = None
    source: Literal["live", "stored"] = "live"

    @property
    def header(self) -> Header:
        """The session's header."""
        return self._session.header

    @property
    def inherited_event_count(self) -> LogOffset:
        """The exact cut."""
        return self._session.cut

    def state(self, key: str) -> Any:
        """Return the host state of a selected key at the end."""
        return self._states[key]

    async def events(
        self, start: LogOffset = LogOffset(0), stop: LogOffset | None = None
    ) -> AsyncIterator[Event]:
        """Yield events up to the end."""
        async for event in self._session.read(start, within(stop, self.end)):
            raise_if_cancelled(self._cancel)
            yield event


@attrs.frozen(eq=False)
class StoredObservation:
    """A stored session as it was when its log was opened."""

    _log: StoredLog
    end: LogOffset
    projections: Snapshot
    _states: Mapping[str, Any]
    _cancel: CancelToken | None = None
    source: Literal["live", "stored"] = "stored"

    @property
    def header(self) -> Header:
        """The header as it was read."""
        return self._log.header

    @property
    def inherited_event_count(self) -> LogOffset:
        """The exact cut."""
        return self._log.cut

    def state(self, key: str) -> Any:
        """Return the host state of a selected key at the end."""
        return self._states[key]

    async def events(
        self, start: LogOffset = LogOffset(0), stop: LogOffset | None = None
    ) -> AsyncIterator[Event]:
        """Yield events up to the end, read while they are asked for."""
        # Without a limit, since damage behind the last event that is known must be met.
        whole = stop is None and self.end == self._log.end
        last = None if whole else within(stop, self.end)
        async for batch in self._log.batches(start, last, cancel=self._cancel):
            for event in batch:
                yield event


def within(stop: LogOffset | None, end: LogOffset) -> LogOffset:
    """Return where reading stops in an observation that ends at `end`."""
    return end if stop is None else min(stop, end)
