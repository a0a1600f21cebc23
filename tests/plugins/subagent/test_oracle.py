"""Whatever the world: the listing says what folding every whole log says."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import attrs
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from heald import Row, open_host
from heald_query import session_query
from heald_session import Header, LogOffset, NewEvent, Session, SessionId, session_store
from heald_session.testing import append_unchecked
from heald_subagent import subagents

ROWS = ("session", "persistence", "projection", "query", "subagent")
CACHE = Row("projection-cache", "projection-cache")
Descriptor = Literal["none", "one-shot", "labelled", "continuable", "broken"]
DATA: dict[str, Any] = {
    "one-shot": {"version": 2, "mode": "one-shot", "provider": "spawn"},
    "labelled": {"version": 2, "mode": "one-shot", "provider": "spawn", "label": "errand"},
    "continuable": {"version": 2, "mode": "continuable", "provider": "spawn", "label": "helper"},
    "broken": {"version": 2, "mode": "continuable"},
}


@attrs.frozen
class Planned:
    """A session of a world: an index names an earlier one, or none if there is none."""

    parent: int
    inherits: int | None
    subagent: bool
    descriptors: tuple[Descriptor, ...]
    created_at: int
    live: bool


SESSIONS = st.builds(
    Planned,
    parent=st.integers(0, 9),
    inherits=st.none() | st.integers(0, 9),
    subagent=st.sampled_from([True, True, True, False]),
    descriptors=st.lists(st.sampled_from(["none", *DATA]), max_size=3).map(tuple),
    created_at=st.integers(0, 3),
    live=st.booleans(),
)


@given(world=st.lists(SESSIONS, min_size=1, max_size=8), cached=st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_listing_equals_a_fold_of_every_whole_log(
    world: list[Planned],
    cached: bool,  # noqa: FBT001
) -> None:
    asyncio.run(compare(world, cached=cached))


async def compare(world: Sequence[Planned], *, cached: bool) -> None:
    rows = [Row(name, name) for name in ROWS] + ([CACHE] if cached else [])
    with tempfile.TemporaryDirectory() as home:
        async with open_host(home=Path(home), rows=rows, env={}, strict=True) as host:
            made = [await make(host, planned, n) for n, planned in enumerate(world)]
            logs = {name: await read(host, name) for name in made}
            live = {s.id for s in host.scope.require(session_store).live()}
            service = host.scope.require(subagents)
            for root in ("root", *made):
                listed = msgspec.to_builtins(await service.list_children(SessionId(root)))
                assert listed == expected_children(logs, live, root)
                tree = msgspec.to_builtins(await service.list_descendants(SessionId(root)))
                assert tree == expected_descendants(logs, live, root)


async def make(host: Any, planned: Planned, number: int) -> str:
    """Make a planned session; where it inherits, the source is stored or live as it was left."""
    store, name = host.scope.require(session_store), SessionId(f"s{number}")
    parent = SessionId(f"s{planned.parent % number}" if number else "root")
    origin = "subagent" if planned.subagent else None
    host.now = lambda: planned.created_at
    if planned.inherits is None or number == 0:
        session: Session = await store.create(
            cwd=None, id=name, parent_session=parent, origin=origin, first=[TURN, TURN_END]
        )
    else:

        def change(header: Header) -> Header:
            return msgspec.structs.replace(header, parent_session=parent, origin=origin)

        source = SessionId(f"s{planned.inherits % number}")
        session = await store.fork(source, id=name, header=change, first=[TURN, TURN_END])
    for kind in planned.descriptors:
        if kind != "none":
            append_unchecked(session, "subagent/descriptor", DATA[kind])
    await session.flush()
    if not planned.live:
        await store.dispose(session)
    return name


TURN = NewEvent("turn/start", {"turn": 1})
TURN_END = NewEvent("turn/end", {"turn": 1, "outcome": "completed"})


@attrs.frozen
class Log:
    header: Header
    cut: LogOffset
    events: tuple[tuple[str, Any], ...]


async def read(host: Any, name: str) -> Log:
    async with host.scope.require(session_query).observe_session(SessionId(name)) as seen:
        events = tuple([(event.type, event.data) async for event in seen.events()])
        return Log(seen.header, seen.inherited_event_count, events)


def row(logs: dict[str, Log], live: set[SessionId], name: str, place: dict[str, Any]) -> Any:
    """Fold a whole log, knowing from the plan which descriptors are sound."""
    identity = None
    for seq, (kind, data) in enumerate(logs[name].events):
        if kind == "subagent/descriptor":
            identity = None if data == DATA["broken"] else data | {"seq": seq}
    if identity is None or identity["seq"] < logs[name].cut:
        if name in live:
            return None
        return {"kind": "diagnostic", "id": name, "reason": "corrupt"} | place
    below = (log.header for log in logs.values() if log.header.parent_session == name)
    told = {
        "kind": "child",
        "id": name,
        "activity": "running" if name in live else "inactive",
        "has_children": any(header.origin == "subagent" for header in below),
        "mode": identity["mode"],
    }
    return told | ({"label": identity["label"]} if "label" in identity else {}) | place


def below(logs: dict[str, Log], parent: str) -> list[str]:
    found = [n for n, log in logs.items() if log.header.parent_session == parent]
    return sorted(found, key=lambda name: (logs[name].header.created_at, name))


def expected_children(logs: dict[str, Log], live: set[SessionId], root: str) -> list[Any]:
    subs = [name for name in below(logs, root) if logs[name].header.origin == "subagent"]
    return [told for name in subs if (told := row(logs, live, name, {})) is not None]


def expected_descendants(
    logs: dict[str, Log], live: set[SessionId], root: str, depth: int = 1
) -> list[Any]:
    rows: list[Any] = []
    for name in below(logs, root):
        place = {"parent_id": root, "depth": depth}
        if logs[name].header.origin == "subagent":
            rows.append(row(logs, live, name, place))
        rows += expected_descendants(logs, live, name, depth + 1)
    return [told for told in rows if told is not None]
