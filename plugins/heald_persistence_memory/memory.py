"""Session logs in memory."""

from __future__ import annotations

import copy
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import ClassVar, Self

from heald import CancelToken, raise_if_cancelled
from heald_persistence import Damage, LogWriter, SessionBusy, StoredLog, StoredSession, Survey
from heald_persistence_memory.log import Log, MemoryLog
from heald_persistence_memory.writer import MemoryWriter
from heald_session import Event, Header, LogOffset, SessionId, SessionIdTaken, SessionNotFound


class MemoryPersistence:
    """Every log is a list; nothing waits for a log, so nothing can come between two lines."""

    _named: ClassVar[dict[str, MemoryPersistence]] = {}

    def __init__(self) -> None:
        self._logs: dict[SessionId, Log] = {}
        self._written: set[SessionId] = set()
        """Sessions that have a writer, stored or not."""
        self._trash: list[Log] = []
        self._on_deleted: Callable[[SessionId], Awaitable[None]] | None = None

    @property
    def outlives_process(self) -> bool:
        return False

    @classmethod
    def named(cls, name: str) -> MemoryPersistence:
        """Return the logs that this process keeps under a name."""
        return cls._named.setdefault(name, cls())

    def telling(self, on_deleted: Callable[[SessionId], Awaitable[None]]) -> Self:
        """Return the same logs with one who is told of what is deleted through this."""
        same = copy.copy(self)
        same._on_deleted = on_deleted  # noqa: SLF001 - it is one of these
        return same

    async def list(self, *, cancel: CancelToken | None = None) -> Sequence[StoredSession]:
        return (await self.survey({}, cancel=cancel)).changed

    async def survey(
        self, known: Mapping[str, str], *, logs: bool = False, cancel: CancelToken | None = None
    ) -> Survey:
        raise_if_cancelled(cancel)
        stored = [_described(log, logs=logs) for log in self._logs.values()]
        changed = tuple(item for item in stored if known.get(item.name) != item.stamp)
        return Survey(changed, frozenset(known.keys() - self._logs.keys()))

    async def read(
        self,
        id: SessionId,  # noqa: A002
        *,
        ahead: Collection[str] | None = None,
        cancel: CancelToken | None = None,
    ) -> StoredLog:
        raise_if_cancelled(cancel)
        return MemoryLog(self._log(id))

    async def create(self, header: Header, cut: LogOffset) -> LogWriter:
        return self._created(Log(header, cut))

    async def fork(self, source: SessionId, cut: LogOffset, header: Header) -> LogWriter:
        self._check_free(header.id)
        return self._created(Log(header, cut), self._prefix(source, cut) if cut else ())

    async def open(self, id: SessionId) -> LogWriter:  # noqa: A002
        log = self._log(id)
        self._check_idle(id)
        return self._writer(log)

    async def verify(
        self,
        id: SessionId,  # noqa: A002
        *,
        cancel: CancelToken | None = None,
    ) -> Sequence[Damage]:
        raise_if_cancelled(cancel)
        self._log(id)
        return ()

    async def salvage(self, id: SessionId) -> Sequence[Damage]:  # noqa: A002
        self._log(id)
        self._check_idle(id)
        return ()

    async def delete(self, id: SessionId) -> None:  # noqa: A002
        log = self._log(id)
        self._check_idle(id)
        self._trash.append(log)
        del self._logs[id]
        if self._on_deleted is not None:
            await self._on_deleted(id)

    async def restore(self, id: SessionId) -> None:  # noqa: A002
        log = next((log for log in reversed(self._trash) if log.header.id == id), None)
        if log is None:
            raise SessionNotFound(id)
        self._check_free(id)
        self._trash.remove(log)
        self._logs[id] = log

    async def trashed(self) -> Sequence[StoredSession]:
        return [_described(log) for log in reversed(self._trash)]

    def _log(self, id: SessionId) -> Log:  # noqa: A002
        if (log := self._logs.get(id)) is None:
            raise SessionNotFound(id)
        return log

    def _prefix(self, id: SessionId, cut: LogOffset) -> Sequence[Event]:  # noqa: A002
        log = self._log(id)
        if log.end < cut:
            raise ValueError(f"session {id!r} has {log.end} events, not {cut}")
        return log.events[:cut]

    def _check_free(self, id: SessionId) -> None:  # noqa: A002
        if id in self._logs or id in self._written:
            raise SessionIdTaken(id)

    def _check_idle(self, id: SessionId) -> None:  # noqa: A002
        if id in self._written:
            raise SessionBusy(id, f"another handle in process {os.getpid()}")

    def _created(self, log: Log, inherited: Sequence[Event] = ()) -> MemoryWriter:
        self._check_free(log.header.id)
        return self._writer(log, inherited)

    def _writer(self, log: Log, inherited: Sequence[Event] = ()) -> MemoryWriter:
        id = log.header.id  # noqa: A001
        self._written.add(id)
        release = partial(self._written.discard, id)
        return MemoryWriter(log, inherited, store=self._store, release=release)

    def _store(self, log: Log) -> None:
        self._logs[log.header.id] = log


def _described(log: Log, *, logs: bool = False) -> StoredSession:
    stamp = f"{log.stamp}/{log.end}" if logs else log.stamp
    return StoredSession(log.header.id, log.header, log.cut, stamp=stamp)
