"""A stored log opened for reading: a snapshot of its files, decoded in batches in a thread."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import attrs

from heald import CancelToken
from heald_persistence.errors import SessionDamaged
from heald_persistence.layout import Facts
from heald_persistence.lines import BadLine, event_of
from heald_persistence.recovery import check_cut, check_header, damaged, is_torn
from heald_session import Event, Header, LogOffset

BATCH_BYTES = 256 * 1024
_HEADER_BYTES = 64 * 1024
_LOOK_BACK = 64 * 1024


@attrs.define
class _Cursor:
    """Where reading goes on: a place in the file, and the seq of the line there."""

    place: int
    seq: int = 0


class LocalLog:
    """A tail as it was at one moment; whatever is renamed over it later is another file."""

    def __init__(self, facts: Facts, file: BinaryIO) -> None:
        self._facts = facts
        self._file = file
        self._lock = threading.Lock()
        self._bytes_read = 0
        self._decoded = False
        header = self._read(0, _HEADER_BYTES).partition(b"\n")
        check_header(header[0] + header[1], facts)
        self._first = len(header[0]) + 1
        self._stop, self._end = self._find_end(os.fstat(file.fileno()).st_size)
        check_cut(facts, self._end)

    @classmethod
    def open(cls, path: Path, facts: Facts) -> Self:
        """Open a tail; blocks. Raises `SessionDamaged` or `FormatTooNew`."""
        try:
            file = path.open("rb")
        except OSError as error:
            raise SessionDamaged(facts.header.id, f"tail.jsonl: {error.strerror}") from error
        try:
            return cls(facts, file)
        except BaseException:
            file.close()
            raise

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
        return self._bytes_read

    @property
    def frames_decoded(self) -> int:
        return int(self._decoded)

    async def batches(
        self,
        start: LogOffset = LogOffset(0),
        stop: LogOffset | None = None,
        *,
        types: Collection[str] | None = None,
        cancel: CancelToken | None = None,
    ) -> AsyncIterator[Sequence[Event]]:
        end = self._end if stop is None else min(stop, self._end)
        wanted = None if types is None else frozenset(types)
        cursor = _Cursor(self._first)
        while cursor.seq < end and start < end:
            if cancel is not None:
                cancel.check()
            if batch := await asyncio.to_thread(self._batch, cursor, start, end, wanted):
                yield batch

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Let the file go, once no thread is reading it."""
        with self._lock:
            self._file.close()

    def _batch(
        self, cursor: _Cursor, start: int, end: int, wanted: frozenset[str] | None
    ) -> list[Event]:
        """Decode the events of the next block of lines; data stays encoded."""
        self._decoded = True
        events = []
        for line in self._lines(cursor.place):
            if cursor.seq >= end:
                break
            cursor.place += len(line)
            if cursor.seq >= start:
                event = self._event(line, cursor.seq)
                if wanted is None or event.type in wanted:
                    events.append(event)
            cursor.seq += 1
        return events

    def _event(self, line: bytes, seq: int) -> Event:
        try:
            event = event_of(line)
        except BadLine as error:
            raise damaged(self._facts, seq, str(error)) from error
        if event.seq != seq:
            raise damaged(self._facts, seq, f"it has seq {event.seq}")
        return event

    def _lines(self, place: int) -> list[bytes]:
        """Read whole lines from a place on: a block of them, or one that is longer than a block."""
        size = BATCH_BYTES
        while True:
            block = self._read(place, min(size, self._stop - place))
            whole = block.rfind(b"\n") + 1
            if whole:
                return [line + b"\n" for line in block[:whole].split(b"\n")[:-1]]
            if place + size >= self._stop:
                raise SessionDamaged(self._facts.header.id, "tail.jsonl was cut while it was read")
            size *= 2

    def _find_end(self, size: int) -> tuple[int, LogOffset]:
        """Return where the last whole line ends, and the offset after its event."""
        span = _LOOK_BACK
        while True:
            begin = max(self._first, size - span)
            data = self._read(begin, size - begin)
            skip = 0 if begin == self._first else data.find(b"\n") + 1
            lines = data[skip:].split(b"\n")
            lines, rest = lines[:-1], lines[-1]
            stop = size - len(rest)
            if (found := self._last_good(lines, rest, stop)) is not None:
                return found
            if begin == self._first:
                return self._first, LogOffset(0)
            span *= 4

    def _last_good(
        self, lines: list[bytes], rest: bytes, stop: int
    ) -> tuple[int, LogOffset] | None:
        torn = rest
        for line in reversed(lines):
            try:
                return stop, LogOffset(event_of(line + b"\n").seq + 1)
            except BadLine as error:
                torn = line + b"\n" + torn
                stop -= len(line) + 1
                if error.intact or not is_torn(torn):
                    raise SessionDamaged(
                        self._facts.header.id, f"its last lines: {error}"
                    ) from error
        return None

    def _read(self, place: int, count: int) -> bytes:
        with self._lock:
            self._file.seek(place)
            data = self._file.read(count)
        self._bytes_read += len(data)
        return data
