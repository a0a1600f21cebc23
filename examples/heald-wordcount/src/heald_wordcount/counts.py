"""What is counted: the event that says so, and the projection that adds it up."""

from __future__ import annotations

import msgspec

from heald_projection import Unit
from heald_session import Event, EventType, Header, LogOffset

COUNTED = "wordcount/counted"
"""The type of the event that a count is logged as."""
WORD_COUNTS = "wordCounts"
"""The key of the projection."""


class WordsCounted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`wordcount/counted`: how many words a file had when it was counted."""

    path: str
    words: int


EVENT_TYPE = EventType(COUNTED, WordsCounted)


def _initial(_header: Header, _cut: LogOffset) -> dict[str, int]:
    return {}


def _apply(totals: dict[str, int], event: Event) -> dict[str, int]:
    """Take the newest count of a file.

    A log may hold what another version of this package wrote: data that does not fit is passed
    over, and the state is returned unchanged.
    """
    try:
        counted = event.data_as(WordsCounted)
    except msgspec.ValidationError:
        return totals
    if totals.get(counted.path) == counted.words:
        return totals
    return {**totals, counted.path: counted.words}


def _view(totals: dict[str, int]) -> dict[str, int]:
    return totals


UNIT = Unit(
    key=WORD_COUNTS,
    state_version=1,
    event_types=frozenset({COUNTED}),
    initial=_initial,
    apply=_apply,
    view=_view,
    state_schema=dict[str, int],
    view_schema=dict[str, int],
)
