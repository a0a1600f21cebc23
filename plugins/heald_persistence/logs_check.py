"""The check `logs`: which stored sessions cannot be listed."""

from __future__ import annotations

from collections.abc import Sequence

from heald import as_word
from heald_doctor import Check, Finding, Progress
from heald_persistence.contracts import SessionPersistence


def logs_check(storage: SessionPersistence) -> Check:
    """Make the check; it reads what a list reads, where `heald sessions verify` reads all."""

    async def run(_: Progress) -> Sequence[Finding]:
        return [
            Finding(
                severity="error",
                message=f"session {item.name} cannot be opened: {item.problem}",
                remedy=f"`heald sessions verify {as_word(item.name)}` says what is damaged",
            )
            for item in await storage.list()
            if item.problem is not None
        ]

    return Check(name="logs", about="what every stored session says of itself", run=run)
