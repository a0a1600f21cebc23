"""For random logs, every shipped unit and every cut: live, cold and checkpointed reads agree."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from heald import Discovery, Row, open_host
from heald_projection import CellState, Projections, projections, units
from heald_session import CutInvalid, Event, LogOffset, Session, session_store
from heald_session.testing import append_unchecked

DISCOVERY = Discovery()
ROWS = [Row(id=name, plugin=name) for name in ("session", "projection")]

SHIPPED = {
    "agentPreset",
    "sessionListMetadata",
    "sessionStats",
    "subagent",
    "subagentTiming",
    "title",
    "tokenUsage",
}
"""Every unit that a plugin of this distribution declares; what else is installed is read too."""

words = st.sampled_from(["", "read", "a\nb", "  \n second", "x" * 200, "ü漢"])
small = st.integers(0, 5)
json = st.recursive(
    st.none() | st.booleans() | small | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
tokens = {"input_tokens": small, "output_tokens": small, "cached_tokens": small}
usage = st.fixed_dictionaries({}, optional=tokens)
sound = st.one_of(
    st.tuples(st.just("turn/start"), st.fixed_dictionaries({"turn": small})),
    st.tuples(
        st.just("turn/end"),
        st.fixed_dictionaries({"turn": small, "outcome": st.just("completed")}),
    ),
    st.tuples(
        st.just("step/start"),
        st.fixed_dictionaries({"turn": small, "step": small, "model": words}),
    ),
    st.tuples(st.just("step/end"), st.fixed_dictionaries({"turn": small, "step": small})),
    st.tuples(
        st.sampled_from(["user/message", "inbox/message"]),
        st.fixed_dictionaries({"id": words, "text": words}, optional={"sender": words}),
    ),
    st.tuples(st.just("session/renamed"), st.fixed_dictionaries({"title": words})),
    st.tuples(
        st.just("assistant/message"),
        st.fixed_dictionaries({"text": words}, optional={"usage": usage}),
    ),
    st.tuples(st.just("tool/start"), st.fixed_dictionaries({"call_id": words, "name": words})),
    st.tuples(st.just("agent-preset/selected"), st.fixed_dictionaries({"preset": words})),
    st.tuples(
        st.just("subagent/descriptor"),
        st.fixed_dictionaries(
            {"version": st.sampled_from([1, 2, 3]), "mode": st.just("one-shot"), "provider": words},
            optional={"label": words},
        ),
    ),
)
types = sorted(
    {
        "turn/start",
        "turn/end",
        "step/start",
        "step/end",
        "session/renamed",
        "user/message",
        "assistant/message",
        "tool/start",
        "agent-preset/selected",
        "subagent/descriptor",
        "made/up",
    }
)
logs = st.lists(sound | st.tuples(st.sampled_from(types), json), max_size=12)


@settings(max_examples=100, deadline=None)
@given(log=logs, fork_at=st.none() | small)
def test_a_live_cell_a_cold_refold_and_a_checkpoint_with_its_tail_are_equal_at_every_cut(
    log: list[tuple[str, Any]], fork_at: int | None
) -> None:
    asyncio.run(_check(log, fork_at))


async def _check(log: list[tuple[str, Any]], fork_at: int | None) -> None:
    with tempfile.TemporaryDirectory() as home:
        async with open_host(
            home=Path(home), rows=ROWS, env={}, discovery=DISCOVERY, strict=True
        ) as host:
            service = host.scope.require(projections)
            store = host.scope.require(session_store)
            keys = sorted(unit.key for unit in host.vocabulary(units))
            assert set(keys) >= SHIPPED
            session = await store.create(cwd="/somewhere", agent_preset="standard")
            seen, kept = [_live(service, session, keys)], {0: service.cells(session)}
            for place, (type_name, data) in enumerate(log):
                if place == fork_at:
                    try:
                        session = await store.fork(session.id)
                    except CutInvalid:
                        pass
                    else:
                        seen = _refolds(service, session, keys)
                        kept = {}
                append_unchecked(session, type_name, data)
                seen.append(_live(service, session, keys))
                kept[session.end] = service.cells(session)
            assert _refolds(service, session, keys) == seen
            _check_checkpoints(service, session, keys, seen, kept)
            _check_kept_views(service, keys, seen)


def _live(service: Projections, session: Session, keys: list[str]) -> dict[str, Any]:
    return {key: service.state(session, key) for key in keys} | {
        "views": service.snapshot(session, keys)
    }


def _refolds(service: Projections, session: Session, keys: list[str]) -> list[dict[str, Any]]:
    return [_cold(service, session, keys, end) for end in range(session.end + 1)]


def _cold(
    service: Projections,
    session: Session,
    keys: list[str],
    end: int,
    *base: CellState,
) -> dict[str, Any]:
    events = session.hot()[:end]
    fold = service.fold(session.header, session.cut, keys, base)
    wanted = fold.event_types
    chosen: list[Event] = [e for e in events if wanted is None or e.type in wanted]
    for event in chosen:
        if event.seq >= fold.start:
            fold.feed(event)
    return {key: fold.state(key) for key in keys} | {"views": fold.snapshot(LogOffset(end))}


def _check_kept_views(service: Projections, keys: list[str], seen: list[dict[str, Any]]) -> None:
    """Views of states that were kept are those that were seen when they were kept."""
    shown = service.kept_views(keys)
    for states in seen:
        texts = [msgspec.json.encode(states[key]).decode() for key in shown.versions]
        assert shown.of(texts) == states["views"].values


def _check_checkpoints(
    service: Projections,
    session: Session,
    keys: list[str],
    seen: list[dict[str, Any]],
    kept: dict[int, Sequence[CellState]],
) -> None:
    """Go on to the end from the states at every cut, some keys having none.

    At those that were not live, the states of the cold fold take their place.
    """
    version = {state.key: state.state_version for state in service.cells(session)}
    for end, states in enumerate(seen):
        made = [CellState(key, version[key], LogOffset(end), states[key]) for key in keys]
        base = [state for state in kept.get(end, made) if end % 2 or state.key != keys[0]]
        assert len(base) >= len(keys) - 1
        went_on = _cold(service, session, keys, session.end, *base)
        assert went_on == seen[-1]
