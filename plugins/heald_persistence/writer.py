"""The one handle that writes a session: a queue, and group commits in a thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

import attrs

from heald import HealdError
from heald_persistence import disk
from heald_persistence.birth import Unborn
from heald_persistence.blobs import BlobWriter, Payload, cite
from heald_persistence.errors import LogChanged, SessionNotSaved
from heald_persistence.layout import Place
from heald_persistence.lease import Lease
from heald_persistence.lines import BadLine, line_of
from heald_persistence.sealing import LEAST_PART, SealedLog
from heald_persistence.tail import Changed, Tail
from heald_session import Event, LogOffset, SessionClosed, SessionId, SessionIdTaken


@attrs.frozen
class Opened:
    """A stored session that was taken for writing."""

    lease: Lease
    tail: Tail
    cut: LogOffset
    end: LogOffset

    def close(self) -> None:
        """Let it go."""
        self.tail.close()
        self.lease.close()


class LocalWriter:
    """Writes what queued while the last sync ran all together; one commit at a time.

    A new session's first commit waits for `flush`; later ones begin with `append`.
    """

    def __init__(
        self,
        id: SessionId,  # noqa: A002
        place: Place,
        *,
        unborn: Unborn | None = None,
        opened: Opened | None = None,
        closed: Callable[[str], None],
        queue_bytes: int,
        seal_bytes: int,
        now: Callable[[], int],
        logger: logging.Logger,
    ) -> None:
        self._id = id
        self._place = place
        self._unborn = unborn
        self._lease: Lease | None = None
        self._tail: Tail | None = None
        self._end = self._flushed = self._cut = LogOffset(0)
        if unborn is not None:
            self._cut = unborn.cut
            if unborn.inheritance is not None:
                self._end = unborn.cut
        if opened is not None:
            self._lease, self._tail, self._cut = opened.lease, opened.tail, opened.cut
            self._end = self._flushed = opened.end
        self._wrote = False
        self._named = opened is not None
        """Whether the directory's own name is known to last."""
        self._blobs = BlobWriter(place.path)
        self._queue: list[bytes] = []
        self._payloads: list[Payload] = []
        """What the queued lines cite; it is stored before them."""
        self._queued = 0
        self._queue_bytes = queue_bytes
        self._trouble: str | None = None
        self._gone: Callable[[], HealdError] | None = None
        """What every further use raises, once the files are no longer ours to write."""
        self._commits: asyncio.Task[None] | None = None
        self._waiters: list[tuple[LogOffset, asyncio.Future[None]]] = []
        """Who waits until how much is durable."""
        self._seal_bytes = self._seal_at = seal_bytes
        self._closed = False
        self._now = now
        self._on_close = closed
        self._logger = logger

    @property
    def flushed(self) -> LogOffset:
        return self._flushed

    @property
    def not_saved(self) -> str | None:
        return str(self._gone()) if self._gone is not None else self._trouble

    def append(self, events: Sequence[Event]) -> None:
        self._check_usable()
        if any(event.seq != self._end + n for n, event in enumerate(events)):
            raise ValueError(f"events do not continue the log at {self._end}")
        cited = [cite(event) for event in events]
        lines = [line_of(event) for event, _ in cited]
        payloads = [payload for _, payload in cited if payload is not None]
        size = sum(map(len, lines)) + _size_of(payloads)
        self._check_room(size)
        self._queue += lines
        self._payloads += payloads
        self._queued += size
        self._end = LogOffset(self._end + len(lines))
        if self._tail is not None and self._trouble is None:
            self._begin()

    async def flush(self) -> None:
        target = self._end
        self._check_usable()
        if self._flushed < target:
            self._begin()
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append((target, waiter))
            await waiter

    async def close(self) -> None:
        if self._closed:
            return
        try:
            if self._flushed < self._end:
                await self.flush()
            await self._seal_the_rest()
        except HealdError as error:
            lost = self._end - self._flushed
            message = "%d events of session %r are lost: %s"
            self._logger.error(message, lost, self._id, error)  # noqa: TRY400 - it says all
        finally:
            await self.discard()

    async def discard(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._commits is not None:
            await asyncio.wait({self._commits})
        self._queue.clear()
        self._payloads.clear()
        if self._tail is not None:
            self._tail.close()
        if self._lease is not None:
            self._lease.close()
        if self._unborn is not None:
            await asyncio.to_thread(self._unborn.close)
        self._on_close(self._place.name)

    def _check_usable(self) -> None:
        if self._closed:
            raise SessionClosed(self._id)
        idle = self._commits is None and self._trouble is None
        if self._gone is None and idle and (fault := self._fault()) is not None:
            self._gone = partial(LogChanged, self._id, fault)
        if self._gone is not None:
            raise self._gone()

    def _check_room(self, size: int) -> None:
        """Refuse to queue more than may wait; what was never flushed is not waiting yet."""
        waiting = self._queued if self._tail is not None or self._trouble else 0
        if waiting and waiting + size > self._queue_bytes:
            reason = self._trouble or "the disk is too slow"
            raise SessionNotSaved(self._id, f"{reason}; {waiting} bytes are waiting")

    def _fault(self) -> str | None:
        if self._lease is not None and not self._lease.stands():
            return "its lock was removed or replaced"
        return self._tail.fault() if self._tail is not None else None

    def _begin(self) -> asyncio.Task[None]:
        if self._commits is None:
            self._commits = asyncio.create_task(self._run(), name=f"writing {self._id}")
        return self._commits

    async def _run(self) -> None:
        try:
            while self._flushed < self._end and await self._commit():
                if self._trouble is None:
                    self._tell(None)
                    await self._seal_if_due()
        except BaseException as error:
            self._commits = None
            self._tell(error)
            raise
        self._commits = None
        self._tell(self._failure())

    def _tell(self, error: BaseException | None) -> None:
        """Let go whoever waited for what is durable now; with an error, all others get it."""
        waiting, self._waiters = self._waiters, []
        for target, waiter in waiting:
            if waiter.done():
                continue
            if target <= self._flushed:
                waiter.set_result(None)
            elif error is not None:
                waiter.set_exception(error)
            else:
                self._waiters.append((target, waiter))

    def _failure(self) -> HealdError | None:
        """Return why the last commit failed, if it did."""
        if self._gone is not None:
            return self._gone()
        return None if self._trouble is None else SessionNotSaved(self._id, self._trouble)

    async def _seal_if_due(self) -> None:
        if self._tail is not None and self._tail.size >= self._seal_at:
            await self._seal()

    async def _seal_the_rest(self) -> None:
        """Seal what this handle leaves, if it wrote anything and that is worth a frame."""
        if self._commits is not None:
            await asyncio.wait({self._commits})
        least = self._seal_bytes // LEAST_PART
        usable = self._gone is None and self._trouble is None
        if self._wrote and usable and self._tail is not None and self._tail.size >= least:
            await self._seal(least)

    async def _seal(self, least: int | None = None) -> None:
        """Move the tail's lines into frames; if that fails they stay where they are."""
        assert self._tail is not None  # noqa: S101 - there is no log without one
        log = SealedLog(self._place, self._tail.header.log_id, self._cut, self._seal_bytes)
        try:
            await asyncio.to_thread(log.seal, self._tail, least)
        except Changed as error:
            self._gone = partial(LogChanged, self._id, str(error))
        except (OSError, BadLine) as error:
            message = "session %r could not be compressed, and is saved uncompressed: %s"
            self._logger.warning(message, self._id, error)
            self._seal_at = self._tail.size + self._seal_bytes
        else:
            self._seal_at = self._seal_bytes

    async def _commit(self) -> bool:
        """Write what is queued; say whether to go on."""
        end, count = self._end, len(self._queue)
        data, payloads = b"".join(self._queue), tuple(self._payloads)
        try:
            await asyncio.to_thread(self._save, data, payloads)
        except Changed as error:
            self._gone = partial(LogChanged, self._id, str(error))
        except SessionIdTaken:
            self._gone = partial(SessionIdTaken, self._id)
        except OSError as error:
            # The first failure is answered at once with a new file; after that each flush tries.
            again = self._trouble is None and self._tail is not None
            self._trouble = error.strerror or str(error)
            return again
        else:
            self._trouble, self._wrote = None, True
            del self._queue[:count]
            del self._payloads[: len(payloads)]
            self._queued -= len(data) + _size_of(payloads)
            self._flushed = end
            return True
        return False

    def _save(self, data: bytes, payloads: Sequence[Payload]) -> None:
        """Make `data` durable at the end of the log; blocks."""
        if self._tail is None:
            assert self._unborn is not None  # noqa: S101 - a session is opened or unborn
            self._lease, self._tail = self._unborn.bear(data, payloads, self._now())
        else:
            if (fault := self._fault()) is not None:
                raise Changed(fault)
            self._blobs.keep(payloads)
            if self._trouble is None:
                self._tail.append(data)
            else:
                self._tail.rewrite(data)
        if not self._named:
            disk.sync_directory(self._place.path.parent)
            self._named = True
        self._tail.settle()


def _size_of(payloads: Sequence[Payload]) -> int:
    return sum(payload.blob.size for payload in payloads)
