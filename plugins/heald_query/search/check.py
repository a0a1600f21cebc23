"""The doctor's look at the search index: what is indexed beside what the logs hold."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Self

import apsw
import attrs

from heald import HealdError, Scope
from heald_doctor import Check, Finding, Progress
from heald_persistence import StoredLog, last_before, session_persistence
from heald_projection_cache import witness_of
from heald_query.search import index
from heald_query.search.index import Indexed
from heald_query.search.numbering import ROLES
from heald_query.search.searching import Searching
from heald_query.search.texts import TYPES, text_of
from heald_session import LogOffset, Seq, SessionId, SessionNotFound, session_store
from heald_sqlite import DerivedDatabase

Fingerprint = tuple[Seq, bytes]
"""What tells the text of one event from any other."""


def search_check(scope: Scope, searching: Searching) -> Check:
    """Return the check of the search index."""

    async def run(progress: Progress) -> Sequence[Finding]:
        database = await searching.opened()
        known = await database.read(index.remembered) or {}
        wrong: list[Finding] = []
        for done, id_ in enumerate(known):
            progress(done, len(known))
            if (said := await _wrong(scope, id_, database)) is not None:
                wrong.append(Finding(severity="warning", message=f"session {id_}: {said}"))
        progress(len(known), len(known))
        return wrong

    async def rebuild(progress: Progress) -> None:
        await searching.rebuild(progress)

    about = "how far each log is indexed for searching, and its texts, beside the log itself"
    return Check(name="search-index", about=about, run=run, rebuild=rebuild)


@attrs.frozen
class _Kept:
    """What the index has of a session, at one moment."""

    row: Indexed
    texts: Sequence[Fingerprint]
    """In the order of the log."""

    @classmethod
    def read(cls, connection: apsw.Connection, id_: SessionId) -> Self | None:
        """Look; None if it has nothing."""
        row = index.remembered(connection, [id_]).get(id_)
        texts = (_fingerprint(*found) for found in index.texts_of(connection, id_))
        return None if row is None else cls(row, sorted(texts))


async def _wrong(scope: Scope, id_: SessionId, database: DerivedDatabase) -> str | None:
    """Say what the index has of a session that its log has not, if anything."""
    storage, store = scope.find(session_persistence), scope.find(session_store)
    if store is not None and store.get(id_) is not None:
        return None  # what is live may be kept nowhere else, and each search looks at it
    if storage is None:
        return "it is indexed and not here any more; the next search forgets it"
    if (kept := await database.read(lambda connection: _Kept.read(connection, id_))) is None:
        return None
    try:
        async with await storage.read(id_) as log:
            return await _differing(log, kept)
    except SessionNotFound:
        return "it is indexed and not stored any more; the next search forgets it"
    except HealdError as error:
        return f"it is indexed and cannot be read: {error}"


async def _differing(log: StoredLog, kept: _Kept) -> str | None:
    mark = kept.row.watermark
    if mark.log_id != log.header.log_id:
        return "the index has another log of this name; the next search indexes this one"
    if mark.offset > log.end:
        return f"the index is at {mark.offset}, and the log ends at {log.end}"
    if kept.row.damaged:
        return None  # the log is what is wrong, and `sessions verify` tells of that
    last = await last_before(log.batches, mark.offset)
    if mark.offset and (last is None or witness_of(last) != mark.witness):
        return f"the log has another event before {mark.offset} than the one that was indexed"
    return _difference(await _fingerprints(log, mark.offset), kept.texts, mark.offset)


def _difference(
    logged: Sequence[Fingerprint], kept: Sequence[Fingerprint], end: LogOffset
) -> str | None:
    if len(logged) != len(kept):
        return f"{len(kept)} texts are indexed of the {len(logged)} in its first {end} events"
    for (seq, text), found in zip(logged, kept, strict=True):
        if (seq, text) != found:
            return f"event {seq} is indexed with another text or role than the log has"
    return None


async def _fingerprints(log: StoredLog, end: LogOffset) -> Sequence[Fingerprint]:
    """Return what a log has, one batch at a time in memory."""
    found: list[Fingerprint] = []
    async for batch in log.batches(LogOffset(0), end, types=TYPES):
        texts = (text for text in map(text_of, batch) if text is not None)
        found += (_fingerprint(text.seq, ROLES.index(text.role), text.text) for text in texts)
    return found


def _fingerprint(seq: Seq, role: int, text: str) -> Fingerprint:
    return seq, hashlib.blake2b(f"{role} {text}".encode(), digest_size=16).digest()
