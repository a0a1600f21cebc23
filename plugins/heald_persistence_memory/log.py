"""A log in memory, and a reader of it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from types import TracebackType
from typing import Self

import attrs

from heald import CancelToken, raise_if_cancelled
from heald_persistence import Damage
from heald_session import Event, Header, LogOffset

_BATCH = 1000


@attrs.frozen(eq=False)
class Log:
    """A stored session; it only grows, so its length at a moment is a snapshot of it."""

    header: Header
    cut: LogOffset
    events: list[Event] = attrs.field(factory=list)
    stamp: str = attrs.field(init=False, factory=lambda: secrets.token_hex(8))
    """What tells it from every other log, also of another process."""

    @property
    def end(self) -> LogOffset:
        """How many events there are."""
        return LogOffset(len(self.events))


class MemoryLog:
    """A log as it was at one moment."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._end = log.end
        self._bytes_read = 0
        self._batches_read = 0

    @property
    def header(self) -> Header:
        return self._log.header

    @property
    def cut(self) -> LogOffset:
        return self._log.cut

    @property
    def end(self) -> LogOffset:
        return self._end

    @property
    def bytes_read(self) -> int:
        return self._bytes_read

    @property
    def frames_decoded(self) -> int:
        return self._batches_read

    async def batches(
        self,
        start: LogOffset = LogOffset(0),
        stop: LogOffset | None = None,
        *,
        types: Collection[str] | None = None,
        on_damage: Callable[[Damage], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> AsyncIterator[Sequence[Event]]:
        end = self._end if stop is None else min(stop, self._end)
        for begin in range(start, end, _BATCH):
            raise_if_cancelled(cancel)
            events = self._log.events[begin : min(begin + _BATCH, end)]
            if batch := [event for event in events if types is None or event.type in types]:
                self._count(batch)
                yield batch
            await asyncio.sleep(0)  # others have their turn, as they would beside a disk

    async def settle(self) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    def _count(self, batch: Sequence[Event]) -> None:
        self._bytes_read += sum(len(event.encoded) for event in batch)
        self._batches_read += 1
