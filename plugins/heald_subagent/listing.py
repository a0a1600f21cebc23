"""Lists the children and descendants of a session from the corpus, writing nothing back.

Headers say which sessions are subagents and whose; a ladder takes each identity. Nothing is loaded,
resumed or remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Self

import attrs
import msgspec

from heald import CancelToken, Scope, raise_if_cancelled
from heald_query import SessionRecord
from heald_session import Header, SessionId, session_store
from heald_subagent.ladder import Finding, Ladder
from heald_subagent.rows import ORIGIN, ChildRow, DiagnosticRow, SubagentRow
from heald_subagent.services import corpus_of
from heald_subagent.workers import work_through

COLD_READS = 4
"""How many logs are read at once: a bound on the medium, not a setting of a deployment."""


@attrs.frozen
class Corpus:
    """The headers of one enumeration, paired in one step with what was live."""

    headers: Sequence[Header]
    """In the order rows have: by creation time, then by id."""
    live: Mapping[SessionId, Any]
    """The sessions themselves, of which nothing is asked but where their own events begin."""
    parents: frozenset[SessionId | None]
    """The sessions that have a subagent directly below them."""

    @classmethod
    def of(cls, headers: list[Header], live: Mapping[SessionId, Any]) -> Self:
        """Put headers in order."""
        headers.sort(key=attrgetter("created_at", "id"))
        parents = frozenset(h.parent_session for h in headers if h.origin == ORIGIN)
        return cls(headers, live, parents)

    def children(self) -> Mapping[SessionId, list[Header]]:
        """Return every session by its parent, ordinary ones too, the last first."""
        below: dict[SessionId, list[Header]] = {}
        for header in reversed(self.headers):
            if header.parent_session is not None:
                below.setdefault(header.parent_session, []).append(header)
        return below

    def row(
        self,
        header: Header,
        finding: Finding,
        parent_id: SessionId | None = None,
        depth: int | None = None,
    ) -> SubagentRow | None:
        """Make a subagent's row; one that is still being created has none."""
        id = header.id  # noqa: A001 - what it is
        if finding is None:
            return None
        if isinstance(finding, str):
            return DiagnosticRow(id=id, reason=finding, parent_id=parent_id, depth=depth)
        return ChildRow(
            id=id,
            activity="running" if id in self.live else "inactive",
            has_children=id in self.parents,
            mode=finding.mode,
            label=None if finding.label is msgspec.UNSET else finding.label,
            parent_id=parent_id,
            depth=depth,
        )


class Place(NamedTuple):
    """A session in a tree: its direct parent, and how many sessions down it is."""

    header: Header
    parent_id: SessionId
    depth: int


@attrs.frozen
class Listing:
    """Makes the rows of one call after another; holds nothing between them."""

    scope: Scope

    async def children(self, parent_id: SessionId, cancel: CancelToken | None) -> list[SubagentRow]:
        """List direct children; see `Subagents.list_children`."""
        corpus = self._pair(await self._enumerate(cancel))
        below = [
            header
            for header in corpus.headers
            if header.origin == ORIGIN and header.parent_session == parent_id
        ]
        found = await self._find(corpus, below, cancel)
        return [
            row
            for header, finding in zip(below, found, strict=True)
            if (row := corpus.row(header, finding)) is not None
        ]

    async def descendants(
        self, root_id: SessionId, cancel: CancelToken | None
    ) -> list[SubagentRow]:
        """List the tree below a session, parents first; see `Subagents.list_descendants`."""
        return [row for _, row in await self.tree(root_id, cancel)]

    async def tree(
        self, root_id: SessionId, cancel: CancelToken | None = None
    ) -> list[tuple[Header, SubagentRow]]:
        """List the tree below a session, each row beside the header it was made of."""
        corpus = self._pair(await self._enumerate(cancel))
        places = [place for place in _walk(corpus, root_id) if place.header.origin == ORIGIN]
        found = await self._find(corpus, [place.header for place in places], cancel)
        return [
            (header, row)
            for (header, parent_id, depth), finding in zip(places, found, strict=True)
            if (row := corpus.row(header, finding, parent_id, depth)) is not None
        ]

    async def _enumerate(self, cancel: CancelToken | None) -> Sequence[SessionRecord]:
        """Read the corpus once, everything it needs having been looked for first."""
        corpus = corpus_of(self.scope, cancel)
        try:
            records = await corpus.list_sessions(cancel=cancel)
        except Exception:
            raise_if_cancelled(cancel)
            raise
        raise_if_cancelled(cancel)
        return records

    def _pair(self, records: Iterable[SessionRecord]) -> Corpus:
        """Pair each id with a live session; its header wins whole."""
        store = self.scope.find(session_store)
        paired: list[Header] = []
        live: dict[SessionId, Any] = {}
        for record in records:
            header = record.header
            if store is not None and (session := store.get(record.id)) is not None:
                live[record.id] = session
                header = session.header
            if header is not None:
                paired.append(header)
        return Corpus.of(paired, live)

    async def _find(
        self, corpus: Corpus, headers: Sequence[Header], cancel: CancelToken | None
    ) -> Sequence[Finding]:
        """Take each identity.

        Live ones are taken before anything is awaited: `activity` is what the pairing saw.
        """
        ladder = Ladder(self.scope, cancel)
        sessions = [corpus.live.get(header.id) for header in headers]
        live = iter(ladder.live([session for session in sessions if session is not None]))
        unloaded = [h for h, session in zip(headers, sessions, strict=True) if session is None]
        cold = iter(await work_through(unloaded, ladder.cold, limit=COLD_READS))
        raise_if_cancelled(cancel)
        return [next(cold if session is None else live) for session in sessions]


def _walk(corpus: Corpus, root_id: SessionId) -> Iterator[Place]:
    """Go through the tree parents first, without recursion, each session once."""
    below = corpus.children()
    visited = {root_id}
    waiting = [Place(child, root_id, 1) for child in below.get(root_id, ())]
    while waiting:
        place = waiting.pop()
        id = place.header.id  # noqa: A001 - what it is
        if id in visited:
            continue
        visited.add(id)
        yield place
        if id in below:
            waiting += [Place(child, id, place.depth + 1) for child in below[id]]
