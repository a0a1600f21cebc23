"""The slash command `/words`."""

from __future__ import annotations

from heald_commands import Command, CommandCall
from heald_projection import projections
from heald_wordcount.counts import WORD_COUNTS


async def _words(call: CommandCall) -> str:
    # Everything about a session is looked up through its own scope, when it is used.
    service = call.session.scope.require(projections)
    await service.ready(call.session, [WORD_COUNTS])
    return table(service.snapshot(call.session, [WORD_COUNTS]).values[WORD_COUNTS])


def table(totals: dict[str, int]) -> str:
    """Say how many words each counted file has."""
    if not totals:
        return "no file was counted"
    rows = [f"{words:>8,}  {path}" for path, words in sorted(totals.items())]
    return "\n".join([*rows, f"{sum(totals.values()):>8,}  in all"])


WORDS = Command("words", "Show the words counted in this session", _words)
