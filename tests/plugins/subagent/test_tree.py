"""What a tree and a portrait of agents ask the corpus for: each thing once, and of no one else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from heald_projection import ProjectionFaulted
from heald_query import session_query
from heald_session import Seq, SessionId
from heald_subagent.errors import SessionNotSubagent
from heald_subagent.portrait import portrait_of
from heald_subagent.tree import Cost, agents_below

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


async def test_the_cost_of_an_agent_with_an_inherited_beginning_is_known_too(world: World) -> None:
    await world.session("source", ONE_SHOT, live=False)
    await world.fork("source", "seeded", ONE_SHOT, live=False)
    assert await costs(world) == {"seeded": Cost(0, 0)}


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
