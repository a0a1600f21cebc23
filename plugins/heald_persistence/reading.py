"""A stored log opened for reading: a snapshot of its files, decoded part by part in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from heald import CancelToken, HealdError
from heald_persistence import disk
from heald_persistence.blobs import BlobReader
from heald_persistence.contracts import Damage
from heald_persistence.errors import LogChanged, SessionDamaged, StorageUnavailable
from heald_persistence.index import read_index
from heald_persistence.layout import Facts, Place
from heald_persistence.sealed import Sealed
from heald_persistence.sieve import Part, concerns, error_of
from heald_persistence.source import Counts, Source
from heald_persistence.unsealed import Unsealed, header_damage
from heald_session import Event, Header, LogOffset, SessionNotFound

_TRIES = 20
_AT_ONCE = 4


class LocalLog:
    """A log as it was at one moment: its tail first, then what the tail says is sealed."""

    def __init__(self, place: Place, facts: Facts, blobs: Place) -> None:
        self._facts = facts
        self._place = place
        self._counts = Counts()
        self._blobs = BlobReader(blobs.path, self._counts)
        self._open: list[Source] = []
        try:
            self._look()
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, place: Place, facts: Facts, blobs: Place | None = None) -> Self:
        """Open a stored log; blocks. Raises `SessionDamaged` if a file is there and unreadable."""
        try:
            return cls(place, facts, blobs or place)
        except OSError as error:
            if not place.path.exists():  # it has just been deleted
                raise SessionNotFound(facts.header.id) from None
            raise SessionDamaged(facts.header.id, f"{error.filename}: {error.strerror}") from error

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
        parts = self._filled(self.parts(start, stop, wanted))
        count = 1  # of the first part alone is known that it is wanted
        while some := await _some(parts, count, cancel):
            count = _AT_ONCE
            for part in some:
                if not isinstance(part, Damage):
                    yield part
                elif concerns(part, start, stop, wanted):
                    if on_damage is None:
                        raise self._error_of(part)
                    on_damage(part)

    async def settle(self) -> None:
        await asyncio.to_thread(self._settle)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Work that waits for a thread goes when its waiter goes; this must not.
        await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(self.close)))

    def close(self) -> None:
        """Let the files go, once no thread is reading them."""
        for source in self._open:
            source.close()
        self._blobs.close()

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
        path = self._place.path
        try:
            for source in self._open:
                source.sync()
            with contextlib.suppress(FileNotFoundError):  # it may have been deleted meanwhile
                disk.sync_directory(path)
                disk.sync_directory(path.parent)
        except OSError as error:
            raise StorageUnavailable(str(path), str(error.strerror)) from error

    def _filled(self, parts: Iterator[Part]) -> Iterator[Part]:
        """Put the data of blobs in its place."""
        for part in parts:
            if isinstance(part, Damage):
                yield part
            else:
                yield from self._blobs.filled(part)

    def _look(self) -> None:
        """Find out what is there, and where it ends."""
        tail, log, index = self._files_of_one_moment(self._place)
        if tail is None and not self._place.path.exists():
            raise SessionNotFound(self._facts.header.id)
        self._tail = None if tail is None else Unsealed(tail, self._facts)
        self.sealed = self._find_sealed(log, index)
        reached = 0 if self.sealed is None else self.sealed.end
        self._between = [*self._damage_between(reached)]
        end = reached if self._tail is None or self._tail.end is None else self._tail.end
        self._behind = [*self._damage_behind(end)]
        self._end = LogOffset(max(end, self._facts.cut))

    def _files_of_one_moment(self, place: Place) -> list[Source | None]:
        """Open tail, log and index: salvaging replaces all, and takes the tail away first."""
        for left in reversed(range(_TRIES)):
            files = [self._source(path) for path in (place.tail, place.log, place.index)]
            if left == 0 or files[0] is None or files[0].is_at(place.tail):
                return files
            for source in files:
                if source is not None:
                    source.close()
        raise AssertionError  # the last try returns

    def _source(self, path: Path) -> Source | None:
        source = Source.if_there(path, self._counts)
        if source is not None:
            self._open.append(source)
        return source

    def _find_sealed(self, log: Source | None, index: Source | None) -> Sealed | None:
        tail = self._tail
        header = None if tail is None else tail.header
        if log is None or (header is not None and header.sealed == 0):
            return None
        known = [] if index is None else read_index(index.at(0, index.size), self.header.log_id)
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


async def _some(parts: Iterator[Part], count: int, cancel: CancelToken | None) -> list[Part]:
    """Read the next few parts; going to a thread and back for each would cost more than they do."""
    if cancel is not None:
        cancel.check()
    return await asyncio.to_thread(lambda: list(itertools.islice(parts, count)))
