"""Projections of a stored session at any seq are what they were when its log ended there."""

from __future__ import annotations

from typing import Any

import pytest

from heald import Host, Row
from heald.testing import HostFactory
from heald_projection import projections, units
from heald_query import SessionQuery, session_query
from heald_session import APPEND, LogOffset, Session, session_store

NAMES = ("session", "persistence", "projection", "query")


def events() -> list[tuple[str, dict[str, Any]]]:
    """Return two turns on two presets, with a name given in between."""
    told: list[tuple[str, dict[str, Any]]] = []
    for turn in (1, 2):
        usage = {"input_tokens": 10 * turn, "output_tokens": turn}
        told += [
            ("agent-preset/selected", {"preset": f"preset-{turn}"}),
            ("turn/start", {"turn": turn}),
            ("user/message", {"id": f"m{turn}", "text": f"Count {turn}"}),
            ("step/start", {"turn": turn, "step": 1, "model": f"scripted:{turn}"}),
            ("assistant/message", {"text": "one, two", "usage": usage}),
            ("tool/start", {"call_id": f"c{turn}", "name": "read"}),
            ("step/end", {"turn": turn, "step": 1}),
            ("turn/end", {"turn": turn, "outcome": "completed"}),
            ("session/renamed", {"title": f"Counting {turn}"}),
        ]
    return told


def append(session: Session, type_name: str, data: dict[str, Any]) -> None:
    said = type_name in {"user/message", "assistant/message"}
    session.append(type_name, data, surface=APPEND if said else None)


async def lived(host: Host, session: Session, keys: list[str]) -> list[Any]:
    """Append the events one by one; return the views and states between them."""
    service = host.scope.require(projections)

    def told() -> Any:
        states = {key: service.state(session, key) for key in keys}
        return service.snapshot(session, keys), states

    seen = [told()]
    for type_name, data in events():
        append(session, type_name, data)
        seen.append(told())
    return seen


async def at_every_cut(query: SessionQuery, session: Session, keys: list[str]) -> list[Any]:
    seen = []
    for end in range(len(events()) + 1):
        async with query.observe_session(session.id, keys, at=LogOffset(end)) as observed:
            assert observed.end == end
            seen.append((observed.projections, {key: observed.state(key) for key in keys}))
    return seen


@pytest.mark.parametrize("cache", [(), ("projection-cache",)])
async def test_every_cut_of_a_live_and_of_a_stored_session_is_as_it_was_lived(
    heald_host: HostFactory, cache: tuple[str, ...]
) -> None:
    async with heald_host(rows=[Row(name, name) for name in (*NAMES, *cache)]) as host:
        store, query = host.scope.require(session_store), host.scope.require(session_query)
        keys = [unit.key for unit in host.vocabulary(units)]
        session = await store.create(cwd=None, agent_preset="standard")
        seen = await lived(host, session, keys)
        assert await at_every_cut(query, session, keys) == seen
        await store.dispose(session)
        assert store.get(session.id) is None
        assert await at_every_cut(query, session, keys) == seen
