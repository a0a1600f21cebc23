"""The one handle that may write a session in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heald_persistence_memory.log import Log
from heald_session import Event, LogOffset, SessionClosed


class MemoryWriter:
    """Queues events until they are flushed, so that an unflushed one is as unsafe as on a disk."""

    def __init__(
        self,
        log: Log,
        inherited: Sequence[Event],
        *,
        store: Callable[[Log], None],
        release: Callable[[], None],
    ) -> None:
        self._log = log
        self._queue = list(inherited)
        self._store = store
        self._release = release
        self._closed = False

    @property
    def flushed(self) -> LogOffset:
        return self._log.end

    @property
    def not_saved(self) -> str | None:
        return None

    def append(self, events: Sequence[Event]) -> None:
        self._check_open()
        end = self._log.end + len(self._queue)
        if any(event.seq != end + n for n, event in enumerate(events)):
            raise ValueError(f"events do not continue the log at {end}")
        self._queue += events

    async def flush(self) -> None:
        self._check_open()
        if self._queue:
            self._log.events.extend(self._queue)
            self._queue.clear()
            self._store(self._log)

    async def close(self) -> None:
        if not self._closed:
            await self.flush()
            await self.discard()

    async def discard(self) -> None:
        if not self._closed:
            self._closed = True
            self._release()

    def _check_open(self) -> None:
        if self._closed:
            raise SessionClosed(self._log.header.id)
