"""The query corpus: find any session, live or stored, and read it at one cut."""

from heald_query.contracts import (
    EventWindow,
    Observation,
    Order,
    Position,
    Relatives,
    SessionFilter,
    SessionQuery,
    SessionRecord,
)
from heald_query.errors import (
    OffsetBeyondEnd,
    ProjectionUnknown,
    SeqBeyondEnd,
    SessionIdAmbiguous,
)
from heald_query.hookspecs import session_query
from heald_query.naming import find_session, session_named
from heald_query.search.contracts import Role, SearchFilter, SearchHit, SearchPage, Snippet
from heald_query.transcript import lines_of, lines_of_damage

__all__ = [
    "EventWindow",
    "Observation",
    "OffsetBeyondEnd",
    "Order",
    "Position",
    "ProjectionUnknown",
    "Relatives",
    "Role",
    "SearchFilter",
    "SearchHit",
    "SearchPage",
    "SeqBeyondEnd",
    "SessionFilter",
    "SessionIdAmbiguous",
    "SessionQuery",
    "SessionRecord",
    "Snippet",
    "find_session",
    "lines_of",
    "lines_of_damage",
    "session_named",
    "session_query",
]
