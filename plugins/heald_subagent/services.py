"""What finding subagents needs: looked for at each call, in one order, before anything is read."""

from __future__ import annotations

from heald import CancelToken, Scope, raise_if_cancelled
from heald_projection import projections
from heald_query import SessionQuery, session_query
from heald_session import session_store
from heald_subagent.errors import (
    SubagentProjectionsUnavailable,
    SubagentQueryUnavailable,
    SubagentSessionStoreUnavailable,
)


def corpus_of(scope: Scope, cancel: CancelToken | None = None) -> SessionQuery:
    """Return the corpus if everything that makes rows of it is there too.

    Raises `SubagentProjectionsUnavailable`, `SubagentSessionStoreUnavailable`, `Cancelled` or
    `SubagentQueryUnavailable`, the first that holds.
    """
    if scope.find(projections) is None:
        raise SubagentProjectionsUnavailable
    if scope.find(session_store) is None:
        raise SubagentSessionStoreUnavailable
    raise_if_cancelled(cancel)
    query = scope.find(session_query)
    if query is None:
        raise SubagentQueryUnavailable
    return query
