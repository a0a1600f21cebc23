"""For any appends, flushes and reopenings, storage holds exactly what memory held."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from heald import Host, Row, open_host
from heald_session import APPEND, Event, LogOffset, SessionId, session_store
from heald_session.testing import append_unchecked

ROWS = [Row("session", "session"), Row("persistence", "persistence")]
ONE = SessionId("one")

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
steps = st.one_of(
    st.tuples(st.just("message"), st.text(max_size=20)),
    st.tuples(st.just("foreign"), values),
    st.tuples(st.just("flush"), st.none()),
    st.tuples(st.just("reopen"), st.booleans()),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, max_size=12))
def test_a_reopened_log_is_the_one_that_was_left(plan: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        asyncio.run(play(Path(home), plan))


async def play(home: Path, plan: list[tuple[str, Any]]) -> None:
    expected: list[Event] = []
    created = False
    rest = iter(plan)
    more = True
    while more:
        async with open_host(home=home, rows=ROWS, env={}, strict=True) as host:
            store = host.scope.require(session_store)
            stored = created and bool(expected)
            session = await (store.resume(ONE) if stored else store.create(cwd=None, id=ONE))
            created = True
            assert list(session.hot()) == expected
            more = False
            for step, value in rest:
                if step == "reopen" and value:
                    more = True
                    break
                if step == "reopen":
                    await check_fork(host, expected)
                elif step == "flush":
                    await session.flush()
                    assert session.flushed == session.end
                elif step == "foreign":
                    expected.append(append_unchecked(session, "acme/odd", value))
                else:
                    message = {"id": "m", "text": value}
                    expected.append(session.append("user/message", message, surface=APPEND))
            assert list(session.hot()) == expected


async def check_fork(host: Host, expected: list[Event]) -> None:
    cut = LogOffset(len(expected) // 2)
    child = await host.scope.require(session_store).fork(ONE, cut=cut)
    assert [msgspec.json.encode(event) for event in child.hot()] == [
        msgspec.json.encode(event) for event in expected[:cut]
    ]
