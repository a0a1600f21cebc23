"""A stored log opened for reading: a snapshot of its files, decoded part by part in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from types import TracebackType
from typing import Self, TypeVar

from heald import CancelToken, HealdError, raise_if_cancelled
from heald_persistence import disk
from heald_persistence.blobs import BlobReader
from heald_persistence.contracts import Damage
from heald_persistence.directory import Directory, unreadable
from heald_persistence.errors import LogChanged, usable
from heald_persistence.index import Index
from heald_persistence.layout import INDEX, LOG, TAIL, Facts
from heald_persistence.parts import Parts
from heald_persistence.sealed import Sealed
from heald_persistence.sieve import Part, concerns, error_of
from heald_persistence.source import Counts, Source
from heald_persistence.unsealed import Unsealed, header_damage
from heald_persistence.waiting import in_a_thread, keeping
from heald_session import Event, Header, LogOffset

T = TypeVar("T")

_TRIES = 20


class LocalLog:
    """A log as it was at one moment: its tail first, then what the tail says is sealed."""

    def __init__(self, directory: Directory, facts: Facts, blobs: Directory) -> None:
        self._facts = facts
        self._directory = directory
        self._blob_directory = blobs
        self._counts = Counts()
        self._blobs = BlobReader(blobs, self._counts)
        self._open: list[Source] = []
        self._ahead: dict[frozenset[str], Parts] = {}
        """The events of some types, from the first on, of which some have been read."""
        self._used = threading.Lock()
        """Held while a thread works with the files, for nobody may close them then."""
        try:
            self._look()
        except BaseException:
            self._close_files()
            raise

    @classmethod
    def open(cls, directory: Directory, facts: Facts, blobs: Directory | None = None) -> Self:
        """Open what is in a directory, which is closed with it; blocks.

        Raises `SessionDamaged` or `StorageUnavailable` if a file is there and unreadable; then the
        directory is open still.
        """
        try:
            return cls(directory, facts, blobs or directory)
        except OSError as error:
            path = directory.path / str(error.filename)
            raise unreadable(path, facts.header.id, error) from error

    @property
    def header(self) -> Header:
        return self._facts.header

    @property
    def cut(self) -> LogOffset:
        return self._facts.cut

    @property
    def end(self) -> LogOffset:
        return self._end

    @property
    def bytes_read(self) -> int:
        return self._counts.bytes_read

    @property
    def frames_decoded(self) -> int:
        return self._counts.frames_decoded

    async def batches(
        self,
        start: LogOffset = LogOffset(0),
        stop: LogOffset | None = None,
        *,
        types: Collection[str] | None = None,
        on_damage: Callable[[Damage], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> AsyncIterator[Sequence[Event]]:
        wanted = None if types is None else frozenset(types)
        parts = self._begun(start, stop, wanted)
        while some := await self._some(parts, cancel):
            for part in some:
                if not isinstance(part, Damage):
                    yield part
                elif concerns(part, start, stop, wanted):
                    if on_damage is None:
                        raise self._error_of(part)
                    on_damage(part)

    async def settle(self) -> None:
        await asyncio.to_thread(self._exclusively, self._settle)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._used.acquire(blocking=False):  # closing what was only read waits for no medium
            try:
                self._close()
            finally:
                self._used.release()
        else:
            await keeping(in_a_thread(self.close), lambda _: None)

    def close(self) -> None:
        """Let the files go, once no thread is reading them."""
        self._exclusively(self._close)

    def _close(self) -> None:
        self._close_files()
        self._directory.close()
        self._blob_directory.close()

    def _close_files(self) -> None:
        for source in self._open:
            source.close()

    def _exclusively(self, work: Callable[[], T]) -> T:
        with self._used:
            return work()

    def read_ahead(self, types: Collection[str]) -> None:
        """Read the first parts of what `batches` will be asked for; blocks."""
        wanted = frozenset(types)
        with contextlib.suppress(OSError):  # it is met again when it is asked for
            parts = self._begun(0, None, wanted)
            parts.read_on()
            self._ahead[wanted] = parts

    def _begun(self, start: int, stop: int | None, wanted: frozenset[str] | None) -> Parts:
        ahead = None
        if wanted is not None and start == 0 and stop is None:
            ahead = self._ahead.pop(wanted, None)
        # Of all that there is, the first part alone is known to be wanted.
        first = 1 if wanted is None else Parts.AT_ONCE
        return ahead or Parts(self._filled(self.parts(start, stop, wanted)), first)

    async def _some(self, parts: Parts, cancel: CancelToken | None) -> list[Part]:
        raise_if_cancelled(cancel)
        if parts.are_due:
            await asyncio.to_thread(self._exclusively, parts.read_on)
        return parts.take()

    def parts(
        self, start: int = 0, stop: int | None = None, wanted: frozenset[str] | None = None
    ) -> Iterator[Part]:
        """Yield events, as their lines have them, with all that is lost in its place; blocks."""
        if stop is not None and start >= stop:
            return
        if self.sealed is not None:
            yield from self.sealed.parts(start, stop, wanted)
        yield from self._between
        if self._tail is not None:
            yield from self._tail.parts(start, stop, wanted)
        yield from self._behind

    def examined(self) -> Iterator[Part]:
        """Yield events and all that is wrong with the log, though it may cost no event; blocks."""
        yield from self._filled(self.parts())
        if self.sealed is not None:
            yield from self.sealed.false_maps()

    def filled(self, event: Event) -> Iterator[Part]:
        """Yield an event with its data, or what is wrong with the blob that it cites; blocks."""
        yield from self._blobs.filled([event])

    def _error_of(self, damage: Damage) -> HealdError:
        """Tell what was damaged before from what somebody changed while it was read."""
        id_ = self._facts.header.id
        for source in self._open:
            if source.was_changed():
                return LogChanged(id_, f"{source.name} was changed while it was read")
        return error_of(id_, damage)

    def _settle(self) -> None:
        """Sync what is open, and the names it was found by, which a rename may have just made."""
        path = self._directory.path
        with usable(path):
            for source in self._open:
                source.sync()
            with contextlib.suppress(FileNotFoundError):  # it may have been deleted meanwhile
                disk.sync_directory(path)
                disk.sync_directory(path.parent)

    def _filled(self, parts: Iterator[Part]) -> Iterator[Part]:
        """Put the data of blobs in its place."""
        for part in parts:
            if isinstance(part, Damage):
                yield part
            else:
                yield from self._blobs.filled(part)

    def _look(self) -> None:
        """Find out what is there, and where it ends."""
        tail, log, index = self._files_of_one_moment()
        self._tail = None if tail is None else Unsealed(tail, self._facts)
        self.sealed = self._find_sealed(log, index)
        reached = 0 if self.sealed is None else self.sealed.end
        self._between = [*self._damage_between(reached)]
        end = reached if self._tail is None or self._tail.end is None else self._tail.end
        self._behind = [*self._damage_behind(end)]
        self._end = LogOffset(max(end, self._facts.cut))

    def _files_of_one_moment(self) -> tuple[Source | None, Source | None, bytes]:
        """Open tail and log and read the index: salvaging replaces all, the tail first."""
        for left in reversed(range(_TRIES)):
            tail, log, index = self._source(TAIL), self._source(LOG), self._index()
            if left == 0 or tail is None or tail.stands():
                return tail, log, index
            while self._open:
                self._open.pop().close()
        raise AssertionError  # the last try returns

    def _index(self) -> bytes:
        """Read the index, which is derived: without it blocks are found by walking."""
        try:
            data = self._directory.content(INDEX)
        except OSError:
            return b""
        self._counts.bytes_read += len(data)
        return data

    def _source(self, name: str) -> Source | None:
        source = Source.if_there(name, self._directory, self._counts)
        if source is not None:
            self._open.append(source)
        return source

    def _find_sealed(self, log: Source | None, index: bytes) -> Sealed | None:
        tail = self._tail
        header = None if tail is None else tail.header
        if log is None or (header is not None and header.sealed == 0):
            return None
        known = Index(index, self.header.log_id)
        if header is None:
            return Sealed(log, None, None if tail is None else tail.base, known)
        return Sealed(log, header.sealed, header.base, known)

    def _damage_between(self, reached: int) -> Iterator[Damage]:
        """Yield what is wrong between the sealed part and the tail."""
        if self._tail is None:
            yield _missing("tail.jsonl", reached, None)
        elif self._tail.fault is not None:
            yield header_damage(self._tail.fault, reached, self._tail.base)
        elif (base := self._tail.base or 0) > reached:
            yield _missing("log.jsonl.zst", reached, base - reached)

    def _damage_behind(self, end: int) -> Iterator[Damage]:
        """Yield the inherited events that are lost: they were stored with the first bytes."""
        if self._facts.cut > end:
            yield _missing("tail.jsonl", end, self._facts.cut - end)


def _missing(file: str, first: int, count: int | None) -> Damage:
    return Damage(
        kind="missing",
        file=file,
        offset=0,
        first=LogOffset(first),
        count=count,
        types=None,
        reason="it is not there" if count is None else "they are not there",
    )
