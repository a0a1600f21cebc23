"""The query corpus: find any session, live or stored, and read it at one cut."""

from heald_query.contracts import Observation, SessionQuery, SessionRecord
from heald_query.errors import OffsetBeyondEnd, SessionIdAmbiguous
from heald_query.hookspecs import session_query
from heald_query.naming import find_session, session_named

__all__ = [
    "Observation",
    "OffsetBeyondEnd",
    "SessionIdAmbiguous",
    "SessionQuery",
    "SessionRecord",
    "find_session",
    "session_named",
    "session_query",
]
