"""Which session is meant by the beginning of an id."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from heald import visible
from heald_query.contracts import SessionQuery
from heald_query.errors import SessionIdAmbiguous
from heald_session import SessionId, SessionNotFound

_FEW = 10
"""How many ids are all shown to who named none of them."""


def session_named(given: str, ids: Collection[str]) -> SessionId:
    """Return the one id that is `given`, is shown as that, or begins with it.

    Raises `SessionIdAmbiguous` or `SessionNotFound`.
    """
    if given in ids:
        return SessionId(given)
    fits = sorted(id_ for id_ in ids if "\\" in given and visible(id_) == given)
    fits = fits or sorted(id_ for id_ in ids if given and id_.startswith(given))
    if not fits:
        raise SessionNotFound(given, near(given, ids))
    if len(fits) > 1:
        raise SessionIdAmbiguous(given, tuple(fits))
    return SessionId(fits[0])


async def find_session(query: SessionQuery, given: str) -> SessionId:
    """Return the one session of the corpus that a person means; raises as `session_named`."""
    return session_named(given, [record.id for record in await query.list_sessions()])


def near(given: str, ids: Collection[str]) -> tuple[str, ...]:
    """Return the ids that an unknown one may have been meant to be; all if they are few."""
    close = difflib.get_close_matches(given, ids, n=3, cutoff=0.5)
    return tuple(close or (ids if len(ids) <= _FEW else ()))
