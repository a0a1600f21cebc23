"""For random logs, every shipped unit and every cut: live, cold and checkpointed reads agree."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from heald import Discovery, Row, open_host
from heald_projection import CellState, Projections, projections, units
from heald_session import CutInvalid, Event, LogOffset, Session, session_store
from heald_session.testing import append_unchecked

DISCOVERY = Discovery()
ROWS = [Row(id=name, plugin=name) for name in ("session", "projection")]

words = st.sampled_from(["", "read", "a\nb", "  \n second", "x" * 200, "ü漢"])
small = st.integers(0, 5)
json = st.recursive(
    st.none() | st.booleans() | small | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
usage = st.fixed_dictionaries({"input_tokens": small, "output_tokens": small})
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
    st.tuples(st.just("user/message"), st.fixed_dictionaries({"id": words, "text": words})),
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
            assert {"title", "sessionStats"} <= set(keys)
            session = await store.create(cwd="/somewhere", agent_preset="standard")
            seen = [_live(service, session, keys)]
            for place, (type_name, data) in enumerate(log):
                if place == fork_at:
                    try:
                        session = await store.fork(session.id)
                    except CutInvalid:
                        pass
                    else:
                        seen = _refolds(service, session, keys)
                append_unchecked(session, type_name, data)
                seen.append(_live(service, session, keys))
            assert _refolds(service, session, keys) == seen
            _check_checkpoints(service, session, keys, seen)


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


def _check_checkpoints(
    service: Projections, session: Session, keys: list[str], seen: list[dict[str, Any]]
) -> None:
    """Go on from the states at every cut to the end; some keys may have none."""
    version = {state.key: state.state_version for state in service.cells(session)}
    for end, states in enumerate(seen):
        base = [
            CellState(key, version[key], LogOffset(end), states[key])
            for key in (keys if end % 2 else keys[1:])
        ]
        went_on = _cold(service, session, keys, session.end, *base)
        assert went_on == seen[-1]
