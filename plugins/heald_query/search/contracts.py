"""What a search takes and gives."""

from __future__ import annotations

from typing import Literal

import attrs

from heald_session import Seq, SessionId

Role = Literal["user", "assistant", "tool"]
"""Who wrote a text."""


@attrs.frozen(kw_only=True)
class SearchFilter:
    """Where to search: all conditions that are set hold; the default is everywhere."""

    sessions: frozenset[SessionId] | None = None
    roles: frozenset[Role] | None = None
    since: int | None = None
    """Written at or after, in milliseconds since the epoch."""
    subagents: bool | None = None
    """Only in sessions of subagents, or in none of them."""
    inherited: bool | None = None
    """Only in events a fork inherited, or in none of them: they are their source's too."""
    cwd: str | None = None
    """In sessions of this working directory or of one below it."""


@attrs.frozen
class Snippet:
    """A part of a text around what was found in it."""

    text: str
    """One line; `…` stands where the text goes on."""
    marks: tuple[tuple[int, int], ...]
    """Where in `text` the words that were found begin and end."""


@attrs.frozen
class SearchHit:
    """One event that has every word."""

    session: SessionId
    seq: Seq
    time: int
    """When it was written, in milliseconds since the epoch."""
    role: Role
    snippet: Snippet


@attrs.frozen
class SearchPage:
    """What was found."""

    hits: tuple[SearchHit, ...]
    """The best first; of equally good ones the latest."""
    total: int
    """How many events have every word, those beyond the limit too."""
    unread: tuple[SessionId, ...] = ()
    """Sessions that the search does not cover, or not wholly, because they cannot be read."""
