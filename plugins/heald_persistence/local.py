"""Session logs in a directory of the local disk."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from heald import CancelToken, raise_if_cancelled
from heald_persistence import disk
from heald_persistence.birth import OCCUPIED, Unborn, occupied
from heald_persistence.contracts import Damage, LogWriter, StoredLog, StoredSession, Survey
from heald_persistence.directory import Directory
from heald_persistence.errors import SessionDamaged, usable
from heald_persistence.inheritance import Inheritance
from heald_persistence.layout import Facts, Place, name_of, own_facts, read_facts
from heald_persistence.lease import Lease
from heald_persistence.listing import described, surveyed
from heald_persistence.reading import LocalLog
from heald_persistence.recovery import Recovered, quarantine, recover
from heald_persistence.salvage import Salvage, examine
from heald_persistence.sealing import FRAME_BYTES, SealedLog
from heald_persistence.sieve import error_of
from heald_persistence.sweeping import Sweeper
from heald_persistence.tail import Tail
from heald_persistence.trash import Trash, Trashed
from heald_persistence.waiting import Together, in_a_thread, keeping, patiently
from heald_persistence.writer import LocalWriter, Opened
from heald_session import Header, LogOffset, SessionId, SessionIdTaken, SessionNotFound


@attrs.define(eq=False)
class LocalPersistence:
    """One directory a session under a root; `heald_persistence.layout` has the format."""

    root: Path
    queue_bytes: int
    _now: Callable[[], int]
    _logger: logging.Logger
    seal_bytes: int = attrs.field(kw_only=True, default=FRAME_BYTES)
    trash: Trash = attrs.field(
        kw_only=True,
        default=attrs.Factory(lambda self: Trash(self.root / ".trash"), takes_self=True),
    )
    """Where deleted sessions go: on the file system of the others."""
    _on_deleted: Callable[[SessionId], Awaitable[None]] | None = attrs.field(
        kw_only=True, default=None, alias="on_deleted"
    )
    _held: set[str] = attrs.field(init=False, factory=set)
    """The directories that writers of this process have, or will have with the first flush."""
    _together: Together = attrs.field(init=False, factory=Together)
    _sweeper: Sweeper = attrs.field(
        init=False, default=attrs.Factory(lambda self: Sweeper(self.root), takes_self=True)
    )

    @property
    def outlives_process(self) -> bool:
        return True

    async def list(self, *, cancel: CancelToken | None = None) -> Sequence[StoredSession]:
        return (await self.survey({}, cancel=cancel)).changed

    async def survey(
        self, known: Mapping[str, str], *, logs: bool = False, cancel: CancelToken | None = None
    ) -> Survey:
        held = frozenset[str]() if logs else frozenset(self._held)
        return await asyncio.to_thread(self._survey, known, held, logs, cancel)

    async def read(
        self,
        id: SessionId,  # noqa: A002
        *,
        ahead: Collection[str] | None = None,
        cancel: CancelToken | None = None,
    ) -> StoredLog:
        raise_if_cancelled(cancel)
        opening = self._together.do(lambda: self._read_ahead(id, ahead))
        return await keeping(opening, LocalLog.close)

    async def create(self, header: Header, cut: LogOffset) -> LogWriter:
        with self._claimed(header) as place:
            return self._unborn(header, cut, place, header.parent_session)

    async def fork(self, source: SessionId, cut: LogOffset, header: Header) -> LogWriter:
        if cut == 0:
            return await self.create(header, cut)
        with self._claimed(header) as place:
            inheritance = await keeping(
                in_a_thread(lambda: self._inherit(source, cut)), Inheritance.close
            )
            return self._unborn(header, cut, place, source, inheritance)

    async def open(self, id: SessionId) -> LogWriter:  # noqa: A002
        place = self._place(id)
        opened = await patiently(
            id, lambda: keeping(in_a_thread(lambda: self._open(id, place)), Opened.close)
        )
        return self._writer(id, place, opened=opened)

    async def verify(
        self,
        id: SessionId,  # noqa: A002
        *,
        cancel: CancelToken | None = None,
    ) -> Sequence[Damage]:
        return await asyncio.to_thread(examine, self._place(id), id, cancel)

    async def salvage(self, id: SessionId) -> Sequence[Damage]:  # noqa: A002
        return await patiently(id, lambda: asyncio.to_thread(self._salvage, id, self._place(id)))

    async def delete(self, id: SessionId) -> None:  # noqa: A002
        await patiently(id, lambda: asyncio.to_thread(self._delete, id, self._place(id)))
        if self._on_deleted is not None:
            await self._on_deleted(id)

    async def restore(self, id: SessionId) -> None:  # noqa: A002
        await asyncio.to_thread(self._restore, id, self._place(id))

    async def trashed(self) -> Sequence[StoredSession]:
        return await asyncio.to_thread(self._trashed)

    @contextlib.contextmanager
    def _claimed(self, header: Header) -> Iterator[Place]:
        """Take a place for a session in the making, unless making it fails."""
        place = self._place(header.id)
        if place.name in self._held or occupied(place):
            raise SessionIdTaken(header.id)
        self._held.add(place.name)
        try:
            yield place
        except BaseException:
            self._held.discard(place.name)
            raise

    def _unborn(
        self,
        header: Header,
        cut: LogOffset,
        place: Place,
        source: SessionId | None,
        inheritance: Inheritance | None = None,
    ) -> LocalWriter:
        origin = None if source is None else self._place(source)
        unborn = Unborn(header, cut, place, self._sweeper, origin, self.seal_bytes, inheritance)
        return self._writer(header.id, place, unborn=unborn)

    def _inherit(self, source: SessionId, cut: LogOffset) -> Inheritance:
        log = self._read(source)
        try:
            return Inheritance.take(log, cut)
        except BaseException:
            log.close()
            raise

    def _writer(
        self,
        id: SessionId,  # noqa: A002
        place: Place,
        *,
        unborn: Unborn | None = None,
        opened: Opened | None = None,
    ) -> LocalWriter:
        self._held.add(place.name)
        return LocalWriter(
            id,
            place,
            unborn=unborn,
            opened=opened,
            closed=self._held.discard,
            queue_bytes=self.queue_bytes,
            seal_bytes=self.seal_bytes,
            now=self._now,
            logger=self._logger,
        )

    def _place(self, id: SessionId) -> Place:  # noqa: A002
        return Place(self.root / name_of(id))

    def _read_ahead(self, id: SessionId, types: Collection[str] | None) -> LocalLog:  # noqa: A002
        log = self._read(id)
        if types is not None:
            log.read_ahead(types)
        return log

    def _read(self, id: SessionId) -> LocalLog:  # noqa: A002
        """Open a log; again if the name was another directory's meanwhile."""
        place = self._place(id)
        while True:
            directory = Directory.of(place.path, id)
            try:
                log = LocalLog.open(directory, own_facts(directory, id))
            except BaseException:
                stands = directory.stands()
                directory.close()
                if stands:
                    raise
                continue
            if directory.stands():
                return log
            log.close()

    def _salvage(self, id: SessionId, place: Place) -> Sequence[Damage]:  # noqa: A002
        facts = read_facts(place, id)
        with usable(place.path):
            lease = Lease.take(place.lock, self._now())
            try:
                return Salvage(place, facts, self.seal_bytes, self._now()).run()
            finally:
                lease.close()

    def _lease(self, id: SessionId, place: Place) -> Lease:  # noqa: A002
        with usable(place.lock):
            try:
                return Lease.take(place.lock, self._now())
            except FileNotFoundError:  # somebody has just deleted it
                raise SessionNotFound(id) from None

    def _open(self, id: SessionId, place: Place) -> Opened:  # noqa: A002
        read_facts(place, id)  # where there is no session no lock is made
        lease = self._lease(id, place)
        try:
            return self._opened(read_facts(place, id), place, lease)
        except BaseException:
            lease.close()
            raise

    def _opened(self, facts: Facts, place: Place, lease: Lease) -> Opened:
        try:
            data = place.tail.read_bytes()
        except OSError as error:
            raise SessionDamaged(facts.header.id, f"tail.jsonl: {error.strerror}") from error
        found = recover(data, facts)
        with usable(place.path):
            sealed = SealedLog(place, facts.header.log_id, facts.cut)
            if (damage := sealed.take_over(found.header)) is not None:
                raise error_of(facts.header.id, damage)
            tail = Tail.open(place.tail, found.header, found.good, found.torn)
            if found.torn:
                self._cut(place, tail, found)
        return Opened(lease, tail, facts.cut, found.end)

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

    def _delete(self, id: SessionId, place: Place) -> None:  # noqa: A002
        if place.path.is_symlink() or not place.path.is_dir():
            raise SessionNotFound(id)
        lease = self._lease(id, place)
        try:
            with usable(self.trash.root):
                self.trash.take(place.path, self._now())
        finally:
            lease.close()

    def _restore(self, id: SessionId, place: Place) -> None:  # noqa: A002
        name = place.name
        entry = next((found for found in self._entries() if found.name == name), None)
        if entry is None:
            raise SessionNotFound(id)
        if name in self._held or occupied(place):
            raise SessionIdTaken(id)
        with usable(self.trash.root):
            try:
                disk.make_root(self.root)
                self.trash.give_back(entry, place.path)
            except FileNotFoundError:  # somebody else has just restored it
                raise SessionNotFound(id) from None
            except OSError as error:
                if error.errno in OCCUPIED:
                    raise SessionIdTaken(id) from error
                raise

    def _trashed(self) -> Sequence[StoredSession]:
        listed = (described(entry.path, entry.name) for entry in self._entries())
        return [found for found in listed if found is not None]

    def _entries(self) -> Sequence[Trashed]:
        with usable(self.trash.root):
            return self.trash.entries()

    def _survey(
        self,
        known: Mapping[str, str],
        held: frozenset[str],
        logs: bool,  # noqa: FBT001 - a thread is given what is asked for by place
        cancel: CancelToken | None,
    ) -> Survey:
        with usable(self.root):
            return surveyed(self.root, known, held, logs=logs, cancel=cancel)
