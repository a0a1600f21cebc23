"""The doctor's look at the corpus: what is remembered beside what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from heald import Scope
from heald_doctor import Check, Finding, Progress
from heald_persistence import StoredSession, session_persistence
from heald_query.corpus_rows import Kept
from heald_query.stored_sessions import StoredSessions


def corpus_check(scope: Scope, stored: StoredSessions) -> Check:
    """Return the check of what is remembered of stored sessions."""

    async def run(progress: Progress) -> Sequence[Finding]:
        remembered = await stored.remembered()
        progress(0, len(remembered))
        persistence = scope.find(session_persistence)
        found = await persistence.list() if persistence is not None else ()
        progress(len(remembered), len(remembered))
        return await asyncio.to_thread(_differences, remembered, found)

    async def rebuild(progress: Progress) -> None:
        await stored.reset()
        memory = await stored.look()
        await stored.settle()
        progress(len(memory.kept), len(memory.kept))

    about = "what lists remember of stored sessions, beside their headers"
    return Check(name="corpus", about=about, run=run, rebuild=rebuild)


def _differences(remembered: Mapping[str, Kept], found: Sequence[StoredSession]) -> list[Finding]:
    """Tell what is remembered wrongly; what is merely out of date, the next list sees itself."""
    stored = {item.name: item for item in found}
    return [
        Finding(severity="error", message=f"session {name}: {wrong}")
        for name, kept in remembered.items()
        if (wrong := _wrong(kept, stored.get(name))) is not None
    ]


def _wrong(kept: Kept, stored: StoredSession | None) -> str | None:
    if stored is None or stored.stamp != kept.stamp:
        return None
    if stored.header != kept.record.header:
        return "the corpus has another header than its session.json"
    if stored.cut is not None and stored.cut != kept.cut:
        return f"the corpus has {kept.cut} inherited events instead of {stored.cut}"
    return None
