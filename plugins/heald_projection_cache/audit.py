"""The check `checkpoints`: what is kept against the logs it is of, and the same made anew."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from heald import HealdError, Scope
from heald_doctor import Check, Finding, Progress
from heald_persistence import (
    SessionPersistence,
    StoredLog,
    last_before,
    lasting_persistence,
)
from heald_projection import projections
from heald_projection_cache import rows
from heald_projection_cache.checkpoints import Checkpoints
from heald_projection_cache.contracts import Checkpoint, witness_of
from heald_projection_cache.refolding import refolded, versions
from heald_projection_cache.rows import Kept, LogIdentity
from heald_session import SessionId, SessionNotFound, session_store
from heald_sqlite import DerivedDatabase


def checkpoints_check(scope: Scope, database: DerivedDatabase, cache: Checkpoints) -> Check:
    """Make the check; it folds every log that anything is kept for."""
    return Check(
        name="checkpoints",
        about="kept projection states against a fold of each log",
        run=Audit(scope, database).run,
        rebuild=Rebuilding(scope, database, cache).run,
    )


@attrs.frozen
class Audit:
    """Compares what is kept with the logs; to be behind one is no fault."""

    _scope: Scope
    _database: DerivedDatabase

    async def run(self, progress: Progress) -> Sequence[Finding]:
        """Return a finding for every session whose checkpoint its log does not bear out."""
        storage = lasting_persistence(self._scope)
        ids = [] if storage is None else await self._database.read(rows.kept_ids) or []
        findings = []
        for number, id_ in enumerate(ids):
            progress(number, len(ids))
            if storage is not None and (fault := await self._fault(storage, id_)) is not None:
                message = f"the checkpoint of session {id_} {fault}"
                findings.append(Finding(severity="warning", message=message))
        progress(len(ids), len(ids))
        return findings

    async def _fault(self, storage: SessionPersistence, id: SessionId) -> str | None:  # noqa: A002
        kept = await self._kept(id)
        if kept is None:
            return None
        try:
            async with await storage.read(id) as log:
                fault = await self._difference(kept, log)
        except SessionNotFound:
            fault = "is of a session that is not stored"
        except HealdError:  # what is wrong with a log is another check's finding
            return None
        # Sessions go on and are deleted meanwhile, and what is kept with them.
        return fault if await self._kept(id) == kept else None

    async def _kept(self, id: SessionId) -> Kept | None:  # noqa: A002
        return await self._database.read(lambda connection: rows.kept_for(connection, id))

    async def _difference(self, kept: Kept, log: StoredLog) -> str | None:
        if kept.log != LogIdentity.of(log.header, log.cut):
            return "is of another session that had this id"
        if kept.offset > log.end:
            return f"is of {kept.offset} events, and the log has {log.end}"
        today = versions(self._scope.host)
        keys = [row.key for row in kept.rows if today.get(row.key) == row.state_version]
        checkpoint = kept.checkpoint(keys)
        last = await last_before(log.batches, kept.offset)
        if last is None or not checkpoint.follows(last):
            return f"is of another event before offset {kept.offset} than the log has"
        service = self._scope.require(projections)
        states = await refolded(self._scope.host, service, log, keys, kept.offset)
        sound = {state.key for state in checkpoint.states if state in states}
        other = ", ".join(sorted(set(keys) - sound))
        return f"has another {other} than the log" if other else None


@attrs.frozen
class Rebuilding:
    """Keeps a fold of every stored log that nobody writes; who writes one keeps his own."""

    _scope: Scope
    _database: DerivedDatabase
    _cache: Checkpoints

    async def run(self, progress: Progress) -> None:
        """Forget everything and make it again; raises `ResetFailed`."""
        if (storage := lasting_persistence(self._scope)) is None:
            return
        await self._database.reset()
        stored = [item.header.id for item in await storage.list() if item.header is not None]
        for number, id_ in enumerate(stored):
            progress(number, len(stored))
            await self._keep(storage, id_)
        progress(len(stored), len(stored))

    async def _keep(self, storage: SessionPersistence, id: SessionId) -> None:  # noqa: A002
        session = self._scope.require(session_store).get(id)
        if session is not None:
            await self._cache.save(session)
            return
        try:
            writer = await storage.open(id)  # only who has the lease may write what is derived
        except HealdError:
            return
        try:
            async with await storage.read(id) as log:
                await self._keep_all_of(log)
        except HealdError:  # it is damaged
            pass
        finally:
            await writer.discard()

    async def _keep_all_of(self, log: StoredLog) -> None:
        if (last := await last_before(log.batches, log.end)) is None:
            return
        host, service = self._scope.host, self._scope.require(projections)
        states = await refolded(host, service, log, tuple(versions(host)), log.end)
        await log.settle()
        identity = LogIdentity.of(log.header, log.cut)
        checkpoint = Checkpoint(log.end, witness_of(last), states)
        await self._database.write(lambda connection: rows.write(connection, identity, checkpoint))
