"""Lists the children and descendants of a session from the corpus, writing nothing back.

Headers say which sessions are subagents and whose; a ladder takes each identity. Nothing is loaded,
resumed or remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs
import msgspec

from heald import CancelToken, Scope
from heald_projection import projections
from heald_query import session_query
from heald_session import Header, SessionId, session_store
from heald_subagent.errors import (
    SubagentProjectionsUnavailable,
    SubagentQueryUnavailable,
    SubagentSessionStoreUnavailable,
)
from heald_subagent.identity import IdentityView
from heald_subagent.ladder import Finding, Ladder
from heald_subagent.rows import ORIGIN, ChildRow, DiagnosticRow, SubagentRow
from heald_subagent.workers import work_through

COLD_READS = 4
"""How many logs are read at once: a bound on the medium, not a setting of a deployment."""


@attrs.frozen
class Corpus:
    """The headers of one enumeration, paired in one step with what was live."""

    headers: tuple[Header, ...]
    """In the order rows have: by creation time, then by id."""
    live: frozenset[SessionId]

    def children(self) -> Mapping[SessionId, list[Header]]:
        """Return every session by its parent, ordinary ones too."""
        below: dict[SessionId, list[Header]] = {}
        for header in self.headers:
            if header.parent_session is not None:
                below.setdefault(header.parent_session, []).append(header)
        return below

    def parents(self) -> frozenset[SessionId | None]:
        """Return the sessions that have a subagent directly below them."""
        return frozenset(h.parent_session for h in self.headers if h.origin == ORIGIN)


@attrs.frozen
class Place:
    """A subagent to make a row for, and where it is in a tree if one was asked for."""

    header: Header
    parent_id: SessionId | None = None
    depth: int | None = None


@attrs.frozen
class Listing:
    """Makes the rows of one call after another; holds nothing between them."""

    scope: Scope

    async def children(self, parent_id: SessionId, cancel: CancelToken | None) -> list[SubagentRow]:
        """List direct children; see `Subagents.list_children`."""
        headers = await self._enumerate(cancel)
        corpus = self._pair(headers)
        places = [Place(header) for header in corpus.headers if _is_child(header, parent_id)]
        return await self._rows(corpus, places, Ladder(self.scope, cancel))

    async def descendants(
        self, root_id: SessionId, cancel: CancelToken | None
    ) -> list[SubagentRow]:
        """List the tree below a session, parents first; see `Subagents.list_descendants`."""
        headers = await self._enumerate(cancel)
        corpus = self._pair(headers)
        places = [place for place in _walk(corpus, root_id) if place.header.origin == ORIGIN]
        return await self._rows(corpus, places, Ladder(self.scope, cancel))

    async def _enumerate(self, cancel: CancelToken | None) -> dict[SessionId, Header | None]:
        """Read the corpus once, everything it needs having been looked for first."""
        ladder = Ladder(self.scope, cancel)
        if self.scope.find(projections) is None:
            raise SubagentProjectionsUnavailable
        if self.scope.find(session_store) is None:
            raise SubagentSessionStoreUnavailable
        ladder.check()
        query = self.scope.find(session_query)
        if query is None:
            raise SubagentQueryUnavailable
        try:
            records = await query.list_sessions(cancel=cancel)
        except Exception:
            ladder.check()
            raise
        ladder.check()
        return {record.id: record.header for record in records}

    def _pair(self, headers: Mapping[SessionId, Header | None]) -> Corpus:
        """Pair each id with a live session; its header wins whole."""
        store = self.scope.find(session_store)
        paired: list[Header] = []
        live: set[SessionId] = set()
        for id, stored in headers.items():  # noqa: A001 - what it is
            session = store.get(id) if store is not None else None
            if session is not None:
                live.add(id)
            header = stored if session is None else session.header
            if header is not None:
                paired.append(header)
        return Corpus(tuple(sorted(paired, key=_order)), frozenset(live))

    async def _rows(
        self, corpus: Corpus, places: Iterable[Place], ladder: Ladder
    ) -> list[SubagentRow]:
        """Take each identity and make the rows, in the order of the places.

        Live ones are taken before anything is awaited: `activity` is what the pairing saw.
        """
        places = tuple(places)
        found: dict[SessionId, Finding] = {}
        for place in places:
            if place.header.id in corpus.live:
                found[place.header.id] = ladder.live(place.header.id)
        cold = [place.header for place in places if place.header.id not in corpus.live]
        findings = await work_through(cold, ladder.cold, limit=COLD_READS)
        found.update(zip((header.id for header in cold), findings, strict=True))
        ladder.check()
        parents = corpus.parents()
        return [
            row
            for place in places
            if (row := _row(place, found[place.header.id], corpus.live, parents))
        ]


def _order(header: Header) -> tuple[int, SessionId]:
    return header.created_at, header.id


def _is_child(header: Header, parent_id: SessionId) -> bool:
    return header.origin == ORIGIN and header.parent_session == parent_id


def _walk(corpus: Corpus, root_id: SessionId) -> Iterator[Place]:
    """Go through the tree parents first, without recursion, each session once."""
    below = corpus.children()
    visited = {root_id}
    waiting = [Place(child, root_id, 1) for child in reversed(below.get(root_id, ()))]
    while waiting:
        place = waiting.pop()
        id, depth = place.header.id, place.depth or 0  # noqa: A001 - what it is
        if id in visited:
            continue
        visited.add(id)
        yield place
        waiting += [Place(child, id, depth + 1) for child in reversed(below.get(id, ()))]


def _row(
    place: Place,
    finding: Finding,
    live: frozenset[SessionId],
    parents: frozenset[SessionId | None],
) -> SubagentRow | None:
    id = place.header.id  # noqa: A001 - what it is
    if finding is None:
        return None
    if not isinstance(finding, IdentityView):
        return DiagnosticRow(id=id, reason=finding, parent_id=place.parent_id, depth=place.depth)
    return ChildRow(
        id=id,
        activity="running" if id in live else "inactive",
        has_children=id in parents,
        mode=finding.mode,
        label=None if finding.label is msgspec.UNSET else finding.label,
        parent_id=place.parent_id,
        depth=place.depth,
    )
