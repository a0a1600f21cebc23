"""The hook that the corpus owns."""

from __future__ import annotations

from heald import provide
from heald_query.contracts import SessionQuery


@provide
def session_query() -> SessionQuery:
    """Find and read sessions, live and stored."""
    ...
