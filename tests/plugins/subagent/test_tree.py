"""What a tree and a portrait of agents ask the corpus for: each thing once, and of no one else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from heald_projection import ProjectionFaulted
from heald_query import session_query
from heald_session import Seq, SessionId
from heald_subagent.errors import SessionNotSubagent, SubagentQueryUnavailable
from heald_subagent.portrait import portrait_of
from heald_subagent.rows import ChildRow, DiagnosticRow, Mode
from heald_subagent.tree import Agents, Cost, agents_below, as_time, costs_of, line_of

if TYPE_CHECKING:
    from tests.plugins.subagent.conftest import OpenWorld, World

ONE_SHOT: dict[str, Any] = {"version": 2, "mode": "one-shot", "provider": "spawn"}
PARENT = SessionId("parent")


async def costs(world: World) -> dict[str, Cost]:
    agents = await agents_below(world.host.scope, PARENT)
    return {row.id: agents.cost(row) for row in agents.rows}


async def test_a_tree_enumerates_once_and_asks_what_its_own_agents_took(world: World) -> None:
    await world.child("live", ONE_SHOT)
    await world.child("cold", ONE_SHOT, live=False)
    await world.child("below", ONE_SHOT, parent="cold", live=False)
    await world.child("elsewhere", ONE_SHOT, parent="other", live=False)
    await world.session("ordinary", parent="parent", live=False)
    known = Cost(0, 0)
    assert await costs(world) == {"live": known, "cold": known, "below": known}
    assert world.spies.listings == 1
    assert [sorted(asked) for asked in world.spies.valued] == [["below", "cold", "live"]]


async def test_the_cost_of_an_agent_is_its_own_and_not_what_it_inherited(world: World) -> None:
    source = await world.session("source", ONE_SHOT)
    source.append("assistant/message", {"text": "", "usage": {"input_tokens": 100}})
    await source.flush()
    seeded = await world.fork("source", "seeded", ONE_SHOT)
    seeded.append("assistant/message", {"text": "", "usage": {"output_tokens": 7}})
    assert await costs(world) == {"seeded": Cost(0, 7)}
    await world.store.dispose(seeded)
    assert await costs(world) == {"seeded": Cost(0, 7)}


async def test_an_agent_that_neither_a_cell_nor_a_checkpoint_knows_costs_nothing_known(
    open_world: OpenWorld,
) -> None:
    async with open_world() as world:
        await world.child("cold", ONE_SHOT, live=False)
    async with open_world(without={"projection-cache"}) as world:
        await world.child("live", ONE_SHOT)
        assert await costs(world) == {"cold": Cost(), "live": Cost(0, 0)}
        assert (await portrait_of(world.host.scope, SessionId("cold"))).cost == Cost()


@pytest.mark.parametrize("live", [True, False])
async def test_a_portrait_observes_its_session_once_and_lists_nothing(
    world: World, *, live: bool
) -> None:
    await world.child("a", ONE_SHOT | {"label": "helper"}, live=live)
    await world.child("sibling", ONE_SHOT, live=False)
    portrait = await portrait_of(world.host.scope, SessionId("a"))
    assert portrait.identity is not None
    assert portrait.identity.label == "helper"
    assert portrait.activity == ("running" if live else "inactive")
    assert portrait.cost == Cost(0, 0)
    assert (world.spies.observed, world.spies.listings) == (["a"], 0)
    assert world.spies.valued == [["a"]]


async def test_an_inherited_identity_is_not_in_a_portrait(world: World) -> None:
    await world.session("source", ONE_SHOT, live=False)
    await world.fork("source", "seeded", live=False)
    assert (await portrait_of(world.host.scope, SessionId("seeded"))).identity is None


async def test_a_portrait_whose_fold_fails_shows_what_the_header_says(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.child("a", ONE_SHOT, live=False)
    query = type(world.host.scope.require(session_query))
    observe = query.observe_session

    @asynccontextmanager
    async def faulted(
        self: Any, ident: SessionId, keys: Any = (), **given: Any
    ) -> AsyncIterator[Any]:
        async with observe(self, ident, keys, **given) as seen:
            if "subagent" in keys:
                raise ProjectionFaulted("subagent", Seq(0), "subagent", "broken")
            yield seen

    monkeypatch.setattr(query, "observe_session", faulted)
    portrait = await portrait_of(world.host.scope, SessionId("a"))
    assert (portrait.id, portrait.identity, portrait.activity) == ("a", None, "inactive")


async def test_what_is_no_subagent_has_no_portrait(world: World) -> None:
    await world.session("ordinary", live=False)
    with pytest.raises(SessionNotSubagent):
        await portrait_of(world.host.scope, SessionId("ordinary"))


async def test_an_agent_that_is_live_here_is_running_and_can_be_picked_by_that(
    world: World,
) -> None:
    await world.child("live", ONE_SHOT)
    await world.child("cold", ONE_SHOT, live=False)
    await world.child("corrupt", {"version": 3}, live=False)
    agents = await agents_below(world.host.scope, PARENT)
    picked = {
        activity: [row.id for row in agents.only(activity).rows]
        for activity in ("running", "inactive", None)
    }
    assert picked == {
        "running": ["live"],
        "inactive": ["cold"],
        None: ["live", "cold", "corrupt"],
    }
    running = agents.only("running")
    assert (running.total, running.unknown) == (Cost(0, 0), 0)
    assert line_of(running.rows[0], Cost(5, 6)) == "live  running  one-shot  0.0 s  6 tokens"


async def test_a_turn_that_is_open_counts_as_far_as_it_is_logged(world: World) -> None:
    child = await world.child("live", ONE_SHOT)
    now = child.hot()[-1].time + 1000
    world.host.now = lambda: now
    child.append("turn/start", {"turn": 1})
    world.host.now = lambda: now + 1500
    child.append("assistant/message", {"text": "so far", "finish": "stop"})
    assert (await costs(world))["live"].ms == 1500
    world.host.now = lambda: now + 60_000
    assert (await costs(world))["live"].ms == 1500


def a_row(depth: int | None) -> ChildRow:
    mode: Mode = "one-shot"
    return ChildRow(
        id=SessionId("x"), activity="inactive", has_children=False, mode=mode, depth=depth
    )


@pytest.mark.parametrize(
    ("depth", "drawn"),
    [
        (None, "x"),
        (1, "x"),
        (3, "    x"),
        (20, " " * 38 + "x"),
        (21, " " * 40 + "[21] x"),
        (10_000, " " * 40 + "[10000] x"),
    ],
)
def test_an_agent_is_drawn_below_its_parent_up_to_a_depth_that_is_told_from_then_on(
    depth: int | None, drawn: str
) -> None:
    assert line_of(a_row(depth), Cost()) == f"{drawn}  inactive  one-shot  -  - tokens"
    broken = DiagnosticRow(id=SessionId("x"), reason="corrupt", depth=depth)
    assert line_of(broken, Cost()) == f"{drawn}  corrupt"


@pytest.mark.parametrize(
    ("ms", "told"),
    [
        (None, "-"),
        (0, "0.0 s"),
        (59_940, "59.9 s"),
        (60_000, "1 min 0 s"),
        (3_599_000, "59 min 59 s"),
        (3_600_000, "1 h 0 min"),
        (90_061_000, "25 h 1 min"),
    ],
)
def test_a_time_is_told_in_the_two_units_that_matter(ms: int | None, told: str) -> None:
    assert as_time(ms) == told


def test_a_sum_is_of_what_is_known() -> None:
    assert Cost.sum([Cost(1, None), Cost(2, 3), Cost()]) == Cost(3, 3)
    assert Cost.sum([Cost(), Cost()]) == Cost()
    agents = Agents([a_row(1)], {})
    assert (agents.total, agents.unknown) == (Cost(), 1)


async def test_a_tree_and_a_portrait_need_the_services_that_a_listing_needs(
    open_world: OpenWorld,
) -> None:
    async with open_world(without=["query"]) as world:
        for asked in (agents_below, portrait_of):
            with pytest.raises(SubagentQueryUnavailable):
                await asked(world.host.scope, PARENT)
        with pytest.raises(SubagentQueryUnavailable):
            await costs_of(world.host.scope, [])
