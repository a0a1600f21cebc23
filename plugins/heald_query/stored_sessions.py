"""What is remembered of stored sessions, so that a list reads only those that have changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from operator import attrgetter

import attrs

from heald import CancelToken, Scope
from heald_persistence import Survey, lasting_persistence, session_persistence
from heald_query import corpus_rows
from heald_query.contracts import SessionRecord
from heald_query.corpus_rows import Kept
from heald_session import Header, LogOffset
from heald_sqlite import DerivedDatabase


@attrs.frozen
class Memory:
    """Every stored session at one moment; it never changes."""

    kept: Mapping[str, Kept]
    known: Mapping[str, str]
    """The stamps to ask storage with."""
    records: tuple[SessionRecord, ...]
    """In the order of creation, those that are broken last."""

    @classmethod
    def of(cls, kept: Mapping[str, Kept]) -> Memory:
        """Arrange what is kept."""
        known = {name: one.stamp or "" for name, one in kept.items()}
        return cls(kept, known, tuple(by_creation(one.record for one in kept.values())))

    def after(self, survey: Survey) -> Memory:
        """Return what is remembered after a survey."""
        kept = {name: one for name, one in self.kept.items() if name not in survey.gone}
        for stored in survey.changed:
            kept[stored.name] = self._with_cut(Kept.of(stored))
        return self.of(kept)

    def _with_cut(self, found: Kept) -> Kept:
        """Keep an exact cut that a body has shown, as long as it is of the same log."""
        before = self.kept.get(found.record.id)
        if found.cut is not None or before is None or before.record.header != found.record.header:
            return found
        return attrs.evolve(found, cut=before.cut)


class StoredSessions:
    """Remembers stored sessions in memory and in a database that may be deleted at any time.

    Every look asks storage what has changed, so what is remembered saves reading and is never the
    answer. Writing the database down is nobody's to wait for. What does not outlive the process is
    remembered in memory only.
    """

    def __init__(self, scope: Scope, database: DerivedDatabase) -> None:
        self._scope = scope
        self._database = database
        self._looking = asyncio.Lock()
        self._memory: Memory | None = None
        self._unwritten: dict[str, Kept | None] = {}
        self._writing: asyncio.Task[None] | None = None

    async def look(self, cancel: CancelToken | None = None) -> Memory:
        """Return what is stored now, reading what has changed since the last look."""
        persistence = self._scope.find(session_persistence)
        if persistence is None:
            return Memory.of({})
        async with self._looking:
            before = self._memory or await self._read()
            survey = await persistence.survey(before.known, cancel=cancel)
            if survey.changed or survey.gone:
                self._memory = await asyncio.to_thread(before.after, survey)
                self._keep(before, self._memory, survey)
            else:
                self._memory = before
            self._write({})  # what could not be written before may be written now
            return self._memory

    @property
    def kept(self) -> Mapping[str, Kept]:
        """What the last look found, and the exact cuts that were learnt since."""
        return {} if self._memory is None else self._memory.kept

    def learn(self, header: Header, cut: LogOffset) -> None:
        """Keep the exact cut that a body read has shown, where storage does not tell it."""
        kept = None if self._memory is None else self._memory.kept.get(header.id)
        if self._memory is None or kept is None or kept.cut is not None:
            return
        if kept.record.header == header:
            learnt = attrs.evolve(kept, cut=cut)
            self._memory = attrs.evolve(self._memory, kept={**self._memory.kept, header.id: learnt})
            self._write({header.id: learnt})

    async def reset(self) -> None:
        """Forget everything."""
        async with self._looking:
            self._unwritten.clear()
            await self.settle()
            self._memory = None
            if self._lasts:
                await self._database.reset()

    async def remembered(self) -> Mapping[str, Kept]:
        """Return what the database says, whether it is still so or not."""
        await self.settle()
        return (await self._database.read(corpus_rows.read) if self._lasts else None) or {}

    async def settle(self) -> None:
        """Wait until what is to be written was, or could not be."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    @property
    def _lasts(self) -> bool:
        return lasting_persistence(self._scope) is not None

    async def _read(self) -> Memory:
        return await asyncio.to_thread(Memory.of, await self.remembered())

    def _keep(self, before: Memory, now: Memory, survey: Survey) -> None:
        changes: dict[str, Kept | None] = dict.fromkeys(survey.gone)
        for stored in survey.changed:
            changes[stored.name] = now.kept[stored.name]
        self._write({name: kept for name, kept in changes.items() if _matters(before, name, kept)})

    def _write(self, changes: Mapping[str, Kept | None]) -> None:
        if not self._lasts:
            return
        self._unwritten.update(changes)
        if self._unwritten and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write_all(), name="writing the corpus")

    async def _write_all(self) -> None:
        while self._unwritten:
            taken, self._unwritten = self._unwritten, {}
            if not await self._database.write(partial(corpus_rows.write, changes=taken)):
                self._unwritten = taken | self._unwritten
                return


def _matters(before: Memory, name: str, kept: Kept | None) -> bool:
    """Say whether a change has a row to put in place, or one to take away."""
    old = before.kept.get(name)
    return (kept is not None and kept.lasts) or (old is not None and old.lasts)


def by_creation(records: Iterable[SessionRecord]) -> list[SessionRecord]:
    """Return records in the order of their positions, in less time than those take."""
    records = [*records]
    told = [record for record in records if record.header is not None]
    told.sort(key=attrgetter("header.created_at", "id"))
    if len(told) == len(records):
        return told
    return told + sorted((r for r in records if r.header is None), key=attrgetter("id"))
