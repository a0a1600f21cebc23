"""Session logs in a directory of the local disk."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import attrs

from heald import CancelToken, HealdError
from heald_persistence.birth import Unborn, occupied
from heald_persistence.contracts import LogWriter, StoredLog, StoredSession
from heald_persistence.errors import SessionBusy, SessionDamaged, StorageUnavailable
from heald_persistence.layout import Facts, Place, decode_facts, name_of, read_facts
from heald_persistence.lease import Held, Lease
from heald_persistence.reading import LocalLog
from heald_persistence.recovery import Recovered, quarantine, recover
from heald_persistence.tail import Tail
from heald_persistence.writer import LocalWriter, Opened
from heald_session import Header, LogOffset, SessionId, SessionIdTaken

T = TypeVar("T")

_TRIES = 10
_BETWEEN_TRIES = 0.05
"""Seconds; a writer that is just leaving lets go within the tries."""


@attrs.define(eq=False)
class LocalPersistence:
    """One directory a session under a root; `heald_persistence.layout` has the format."""

    root: Path
    queue_bytes: int
    _now: Callable[[], int]
    _logger: logging.Logger
    _created: set[Place] = attrs.field(init=False, factory=set)
    """What writers of this process were created for: it has no directory before the first flush."""

    async def list(self, *, cancel: CancelToken | None = None) -> Sequence[StoredSession]:
        return await asyncio.to_thread(self._list, cancel)

    async def read(self, id: SessionId, *, cancel: CancelToken | None = None) -> StoredLog:  # noqa: A002
        if cancel is not None:
            cancel.check()
        return await _keeping(lambda: self._read(id), LocalLog.close)

    async def create(self, header: Header, cut: LogOffset) -> LogWriter:
        place = self._place(header.id)
        if place in self._created or occupied(place):
            raise SessionIdTaken(header.id)
        self._created.add(place)
        unborn = Unborn(header, cut, place)
        return self._writer(header.id, place, unborn=unborn, closed=self._created.discard)

    async def open(self, id: SessionId) -> LogWriter:  # noqa: A002
        place = self._place(id)
        for left in reversed(range(_TRIES)):
            try:
                opened = await _keeping(lambda: self._open(id, place), Opened.close)
            except Held as held:
                if left == 0:
                    raise SessionBusy(id, held.owner) from None
                await asyncio.sleep(_BETWEEN_TRIES)
            else:
                return self._writer(id, place, opened=opened)
        raise AssertionError  # the last try returns or raises

    def _writer(
        self,
        id: SessionId,  # noqa: A002
        place: Place,
        *,
        unborn: Unborn | None = None,
        opened: Opened | None = None,
        closed: Callable[[Place], None] | None = None,
    ) -> LocalWriter:
        return LocalWriter(
            id,
            place,
            unborn=unborn,
            opened=opened,
            closed=closed,
            queue_bytes=self.queue_bytes,
            now=self._now,
            logger=self._logger,
        )

    def _place(self, id: SessionId) -> Place:  # noqa: A002
        return Place(self.root / name_of(id))

    def _read(self, id: SessionId) -> LocalLog:  # noqa: A002
        place = self._place(id)
        return LocalLog.open(place.tail, read_facts(place, id))

    def _open(self, id: SessionId, place: Place) -> Opened:  # noqa: A002
        facts = read_facts(place, id)
        try:
            lease = Lease.take(place.lock, self._now())
        except OSError as error:
            raise StorageUnavailable(str(place.lock), str(error.strerror)) from error
        try:
            return self._opened(facts, place, lease)
        except BaseException:
            lease.close()
            raise

    def _opened(self, facts: Facts, place: Place, lease: Lease) -> Opened:
        try:
            data = place.tail.read_bytes()
        except OSError as error:
            raise SessionDamaged(facts.header.id, f"tail.jsonl: {error.strerror}") from error
        found = recover(data, facts)
        try:
            tail = Tail.open(place.tail, found.good, found.torn)
            if found.torn:
                self._cut(place, tail, found)
        except OSError as error:
            raise StorageUnavailable(str(place.path), str(error.strerror)) from error
        return Opened(lease, tail, found.end)

    def _cut(self, place: Place, tail: Tail, found: Recovered) -> None:
        """Move what follows the last whole line out of the tail."""
        try:
            kept = quarantine(place, found.torn, self._now())
            tail.rewrite(b"")
            tail.settle()
        except BaseException:
            tail.close()
            raise
        message = "%d bytes of a write that never finished were moved to %s"
        self._logger.warning(message, len(found.torn), kept)

    def _list(self, cancel: CancelToken | None) -> Sequence[StoredSession]:
        try:
            entries = sorted(os.scandir(self.root), key=lambda entry: entry.name)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageUnavailable(str(self.root), str(error.strerror)) from error
        listed = []
        for entry in entries:
            if cancel is not None:
                cancel.check()
            if not entry.name.startswith("."):
                listed.append(_listed(entry))
        return listed


def _listed(entry: os.DirEntry[str]) -> StoredSession:
    """Describe one entry of the root, whatever it is."""
    try:
        if not entry.is_dir(follow_symlinks=False):
            return StoredSession(entry.name, None, problem="this is not a session's directory")
        data = Path(entry.path, "session.json").read_bytes()
        facts = decode_facts(data, entry.name)
    except FileNotFoundError:
        return StoredSession(entry.name, None, problem="session.json is missing")
    except (HealdError, OSError) as error:
        return StoredSession(entry.name, None, problem=str(error))
    if name_of(facts.header.id) != entry.name:
        problem = f"its files are those of session {facts.header.id!r}"
        return StoredSession(entry.name, None, problem=problem)
    return StoredSession(facts.header.id, facts.header, facts.cut)


async def _keeping(make: Callable[[], T], close: Callable[[T], None]) -> T:
    """Make something in a thread; if the caller stops waiting, close what comes of it."""
    making = asyncio.ensure_future(asyncio.to_thread(make))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        making.add_done_callback(lambda done: None if done.exception() else close(done.result()))
        raise
