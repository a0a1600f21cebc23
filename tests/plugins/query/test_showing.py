"""Which events of a log are shown, and what of it is read for that."""

from __future__ import annotations

from typing import Any

import pytest

from heald import Row
from heald.testing import HostFactory
from heald_persistence import session_persistence
from heald_query import OffsetBeyondEnd
from heald_query.showing import Selection, shown
from heald_session import Event, LogOffset, SessionId, session_store

ROWS = [Row(id=name, plugin=name) for name in ("session", "persistence", "projection")]
TURNS = frozenset(("turn/start", "turn/end"))


@pytest.mark.parametrize(
    ("selection", "seqs"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"start": 3}, [3, 4]),
        ({"limit": 2}, [0, 1]),
        ({"limit": 9}, [0, 1, 2, 3, 4]),
        ({"start": 1, "limit": 2}, [1, 2]),
        ({"tail": 2}, [3, 4]),
        ({"tail": 9}, [0, 1, 2, 3, 4]),
        ({"tail": 0}, []),
        ({"limit": 0}, []),
        ({"start": 5}, []),
        ({"types": TURNS}, [0, 4]),
        ({"types": TURNS, "tail": 1}, [4]),
        ({"types": TURNS, "tail": 0}, []),
        ({"types": TURNS, "limit": 1}, [0]),
        ({"types": TURNS, "start": 1, "limit": 1}, [4]),
    ],
)
async def test_a_part_of_a_log_is_shown(
    heald_host: HostFactory, selection: dict[str, Any], seqs: list[int]
) -> None:
    async with heald_host(rows=ROWS) as host:
        await write(await host.scope.require(session_store).create(cwd=None, id=SessionId("s")))
        async with await host.scope.require(session_persistence).read(SessionId("s")) as log:
            found = [item async for item in shown(log, Selection(**selection))]
    assert [item.seq for item in found if isinstance(item, Event)] == seqs


async def test_a_place_beyond_the_end_is_refused(heald_host: HostFactory) -> None:
    async with heald_host(rows=ROWS) as host:
        await write(await host.scope.require(session_store).create(cwd=None, id=SessionId("s")))
        async with await host.scope.require(session_persistence).read(SessionId("s")) as log:
            with pytest.raises(OffsetBeyondEnd):
                await anext(shown(log, Selection(start=LogOffset(6))))


async def write(session: Any) -> None:
    session.append("turn/start", {"turn": 1})
    for n in range(3):
        session.append("inbox/message", {"id": str(n), "text": "more"})
    session.append("turn/end", {"turn": 1, "outcome": "completed"})
    await session.flush()
