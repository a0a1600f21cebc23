"""The projection `agentPreset` and the event that moves it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald import Host, Row
from heald_preset.projection import AGENT_PRESET
from heald_projection import projections
from heald_session import (
    FORMAT_VERSION,
    Event,
    EventInvalid,
    Header,
    LogOffset,
    Seq,
    Session,
    SessionId,
    SessionStore,
)
from heald_session.testing import append_unchecked


@pytest.fixture
async def host(
    open_presets: Callable[..., AbstractAsyncContextManager[Host]],
) -> AsyncIterator[Host]:
    """Return a host that folds sessions."""
    rows = [Row("session", "session"), Row("projection", "projection")]
    async with open_presets(*rows) as host:
        yield host


def project(host: Host, session: Session) -> Any:
    """Return the projection of a live session, which a cold fold must agree with."""
    service = host.scope.require(projections)
    live = service.snapshot(session, ["agentPreset"])
    cold = service.fold(session.header, session.cut, ["agentPreset"])
    for event in session.hot(LogOffset(0)):
        cold.feed(event)
    assert cold.snapshot(session.end) == live
    return live.values["agentPreset"]


async def test_a_session_runs_on_what_its_header_says_until_another_is_selected(
    host: Host, store: SessionStore
) -> None:
    session = await store.create(cwd=None, agent_preset="standard")
    assert project(host, session) == "standard"

    append_unchecked(session, "agent-preset/selected", {"preset": "minimal"})
    assert project(host, session) == "minimal"

    append_unchecked(session, "agent-preset/selected", {"preset": "standard"})
    assert project(host, session) == "standard"


async def test_a_session_without_a_preset_projects_null(host: Host, store: SessionStore) -> None:
    session = await store.create(cwd=None)

    assert project(host, session) is None


async def test_a_fork_goes_on_from_what_was_selected_before_the_cut(
    host: Host, store: SessionStore
) -> None:
    session = await store.create(cwd=None, agent_preset="standard")
    append_unchecked(session, "agent-preset/selected", {"preset": "minimal"})
    fork = await store.fork(session.id)
    append_unchecked(session, "agent-preset/selected", {"preset": "standard"})

    assert project(host, fork) == "minimal"


async def test_choosing_what_is_chosen_changes_no_state(store: SessionStore) -> None:
    session = await store.create(cwd=None, agent_preset="standard")
    event = append_unchecked(session, "agent-preset/selected", {"preset": "standard"})
    state = AGENT_PRESET.initial(session.header, session.cut)

    assert AGENT_PRESET.apply(state, event) is state


@pytest.mark.parametrize("data", [{}, {"preset": None}, {"preset": "x", "more": 1}, [], 3, None])
async def test_a_stored_selection_of_another_shape_selects_nothing(
    host: Host, store: SessionStore, data: object
) -> None:
    session = await store.create(cwd=None, agent_preset="standard")
    append_unchecked(session, "agent-preset/selected", data)

    assert project(host, session) == "standard"


async def test_a_selection_must_name_a_preset(store: SessionStore) -> None:
    session = await store.create(cwd=None)

    with pytest.raises(EventInvalid):
        session.append("agent-preset/selected", {"presets": "minimal"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.none() | st.text(), st.lists(JSON | st.builds(lambda name: {"preset": name}, st.text())))
def test_the_last_selection_that_names_a_preset_wins(started: str | None, log: list[Any]) -> None:
    header = Header(
        version=FORMAT_VERSION, id=SessionId("s"), log_id="l", created_at=0, agent_preset=started
    )
    state = AGENT_PRESET.initial(header, LogOffset(0))
    for n, data in enumerate(log):
        encoded = msgspec.Raw(msgspec.json.encode(data))
        state = AGENT_PRESET.apply(state, Event(Seq(n), "agent-preset/selected", 0, encoded))

    sound = [d for d in log if isinstance(d, dict) and [*d] == ["preset"]]
    names = [d["preset"] for d in sound if isinstance(d["preset"], str)]
    assert AGENT_PRESET.view
    assert AGENT_PRESET.view(state) == [started, *names][-1]
