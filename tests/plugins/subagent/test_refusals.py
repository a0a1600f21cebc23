"""What a listing needs before it reads anything, and how it ends when it is not wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from heald import Cancelled, CancelToken, HealdError, NoConfig, Plugin, Row, implements
from heald_projection import projections
from heald_session import SessionId

if TYPE_CHECKING:
    from tests.plugins.subagent.conftest import OpenWorld, World


def continuable(label: str = "helper") -> dict[str, Any]:
    return {"version": 2, "mode": "continuable", "provider": "spawn", "label": label}


BOTH = pytest.mark.parametrize("call", ["children", "descendants"])


def ask(world: World, call: str) -> Callable[..., Awaitable[list[Any]]]:
    listing: Callable[..., Awaitable[list[Any]]] = getattr(world, call)
    return listing


async def refused(world: World, call: str) -> str:
    """Return the code that a call ends with before anything is read."""
    with pytest.raises(HealdError) as caught:
        await ask(world, call)()
    assert world.spies.listings == 0
    return caught.value.code


@BOTH
async def test_without_a_projection_registry_a_listing_of_no_children_is_refused(
    open_world: OpenWorld, call: str
) -> None:
    async with open_world(without=["projection", "projection-cache"]) as world:
        assert await refused(world, call) == "SUBAGENT_CONTROL_PROJECTIONS_UNAVAILABLE"


class Unfolded(Plugin[NoConfig]):
    """Provides projections that nothing can be asked of, and requires nothing."""

    @implements(projections)
    def provide_projections(self) -> Any:
        return object()


@BOTH
async def test_without_a_session_store_a_listing_is_refused_though_a_plugin_gives_projections(
    open_world: OpenWorld, call: str
) -> None:
    assert Unfolded.requires == ()
    without = ["session", "projection", "projection-cache"]
    rows = [Row("projection", "unfolded")]
    async with open_world(without=without, rows=rows, program={"unfolded": Unfolded}) as world:
        assert world.host.scope.find(projections) is not None
        assert await refused(world, call) == "SUBAGENT_CONTROL_SESSION_STORE_UNAVAILABLE"


@BOTH
async def test_without_a_session_store_the_projections_of_live_sessions_are_of_no_use(
    open_world: OpenWorld, call: str
) -> None:
    async with open_world(without=["session", "projection-cache"]) as world:
        assert await refused(world, call) == "SUBAGENT_CONTROL_SESSION_STORE_UNAVAILABLE"


@BOTH
async def test_without_a_query_service_a_listing_is_refused(
    open_world: OpenWorld, call: str
) -> None:
    async with open_world(without=["query"]) as world:
        assert await refused(world, call) == "SUBAGENT_CONTROL_QUERY_UNAVAILABLE"


@BOTH
@pytest.mark.parametrize(
    ("absent", "code"),
    [
        (["session", "projection", "query"], "SUBAGENT_CONTROL_PROJECTIONS_UNAVAILABLE"),
        (["session", "query"], "SUBAGENT_CONTROL_SESSION_STORE_UNAVAILABLE"),
    ],
)
async def test_of_several_absent_services_the_first_that_is_looked_for_is_told(
    open_world: OpenWorld, call: str, absent: list[str], code: str
) -> None:
    async with open_world(without=[*absent, "projection-cache"]) as world:
        assert await refused(world, call) == code


@BOTH
async def test_a_token_that_is_cancelled_already_lists_nothing(world: World, call: str) -> None:
    token = CancelToken()
    token.cancel("enough")
    with pytest.raises(Cancelled) as caught:
        await ask(world, call)(cancel=token)
    assert (caught.value.code, caught.value.cause) == ("CANCELLED", "enough")
    assert world.spies.listings == 0


@BOTH
@pytest.mark.parametrize("service", ["projection", "session"])
async def test_an_absent_service_is_told_before_a_cancelled_token(
    open_world: OpenWorld, call: str, service: str
) -> None:
    token = CancelToken()
    token.cancel()
    async with open_world(without=[service, "projection-cache"]) as world:
        with pytest.raises(HealdError, match="cannot be listed without"):
            await ask(world, call)(cancel=token)


@BOTH
async def test_a_cancelled_token_is_told_before_an_absent_query(
    open_world: OpenWorld, call: str
) -> None:
    token = CancelToken()
    token.cancel()
    async with open_world(without=["query"]) as world:
        with pytest.raises(Cancelled):
            await ask(world, call)(cancel=token)


@BOTH
async def test_an_enumeration_that_fails_fails_the_call_with_its_own_error(
    world: World, call: str
) -> None:
    error = OSError("the disk is gone")

    async def fail() -> None:
        raise error

    world.spies.before_listing = fail
    with pytest.raises(OSError, match="the disk is gone") as caught:
        await ask(world, call)()
    assert caught.value is error


@BOTH
@pytest.mark.parametrize("fails", [True, False])
async def test_an_abort_during_the_enumeration_is_cancelled(
    world: World,
    call: str,
    fails: bool,  # noqa: FBT001
) -> None:
    token = CancelToken()

    async def abort() -> None:
        token.cancel()
        if fails:
            raise OSError("and it fails as well")

    world.spies.before_listing = abort
    with pytest.raises(Cancelled):
        await ask(world, call)(cancel=token)


@BOTH
async def test_an_abort_during_an_observation_is_cancelled(world: World, call: str) -> None:
    token = CancelToken()

    async def abort(_: SessionId) -> None:
        token.cancel()

    world.spies.cache = lambda _: None
    world.spies.before_observing = abort
    await world.child("a", continuable(), live=False)
    with pytest.raises(Cancelled):
        await ask(world, call)(cancel=token)


@BOTH
async def test_an_observation_that_succeeds_though_the_abort_fired_is_cancelled(
    world: World, call: str
) -> None:
    token = CancelToken()

    async def abort(_: SessionId) -> None:
        token.cancel()

    world.spies.cache = lambda _: None
    world.spies.while_observing = abort
    await world.child("a", continuable(), live=False)
    with pytest.raises(Cancelled):
        await ask(world, call)(cancel=token)


@BOTH
async def test_an_observation_that_fails_when_the_abort_fired_is_cancelled(
    world: World, call: str
) -> None:
    token = CancelToken()

    async def abort(_: SessionId) -> None:
        token.cancel()
        raise OSError("unplugged")

    world.spies.cache = lambda _: None
    world.spies.while_observing = abort
    await world.child("a", continuable(), live=False)
    with pytest.raises(Cancelled):
        await ask(world, call)(cancel=token)


@BOTH
@pytest.mark.parametrize("fails", [True, False])
async def test_an_abort_while_the_cache_is_asked_reads_no_log(
    world: World,
    call: str,
    fails: bool,  # noqa: FBT001
) -> None:
    token = CancelToken()

    def abort(_: Any) -> None:
        token.cancel()
        if fails:
            raise OSError("unplugged")

    world.spies.cache = abort
    await world.child("a", continuable(), live=False)
    with pytest.raises(Cancelled):
        await ask(world, call)(cancel=token)
    assert world.spies.observed == []


@BOTH
async def test_an_abort_while_live_children_are_taken_leaves_a_seeded_cold_child_unread(
    world: World, call: str
) -> None:
    token = CancelToken()
    await world.child("old", continuable(), parent="elsewhere", live=False)
    await world.fork("old", "a", continuable(), live=False)
    await world.child("b", continuable())
    world.spies.before_snapshot = lambda _: token.cancel()
    with pytest.raises(Cancelled):
        await ask(world, call)(cancel=token)
    assert world.spies.snapshots == ["b"]
    assert (world.spies.cached, world.spies.observed) == ([], [])


async def four_in_flight(
    world: World, stay: Callable[[SessionId], Awaitable[None]], **how: Any
) -> asyncio.Task[list[Any]]:
    """List twelve cold children, and return once as many are observed as may be at once."""
    arrived = asyncio.Semaphore(0)

    async def observed(ident: SessionId) -> None:
        arrived.release()
        await stay(ident)

    world.spies.cache = lambda _: None
    world.spies.while_observing = observed
    for number in range(12):
        await world.child(f"{number:02}", continuable(), live=False)
    listing = asyncio.create_task(world.children(**how))
    for _ in range(4):
        await arrived.acquire()
    assert world.spies.in_flight == 4
    return listing


async def test_an_abort_with_four_observations_in_flight_leaves_none_running(
    world: World,
) -> None:
    token = CancelToken()
    gate = asyncio.Event()

    async def stay(_: SessionId) -> None:
        await gate.wait()

    listing = await four_in_flight(world, stay, cancel=token)
    token.cancel()
    gate.set()
    with pytest.raises(Cancelled):
        await listing
    assert world.spies.in_flight == 0
    assert len(world.spies.observed) == 4


async def test_cancelling_the_callers_task_ends_the_workers_first(world: World) -> None:
    let_go: list[str] = []

    async def stay(ident: SessionId) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            let_go.append(ident)

    listing = await four_in_flight(world, stay)
    listing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listing
    assert len(let_go) == 4
    assert world.spies.in_flight == 0


async def test_a_read_that_makes_an_error_of_the_cancellation_is_the_last_of_its_worker(
    world: World,
) -> None:
    async def stay(_: SessionId) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise OSError("it was closed while it was read") from None

    listing = await four_in_flight(world, stay)
    listing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listing
    assert len(world.spies.observed) == 4


@BOTH
async def test_the_token_is_handed_to_every_read(world: World, call: str) -> None:
    token = CancelToken()
    world.spies.cache = lambda _: None
    await world.child("a", continuable(), live=False)
    await ask(world, call)(cancel=token)
    assert world.spies.tokens == [token] * 3


async def test_the_row_is_composed_without_any_of_the_services_it_uses(
    open_world: OpenWorld,
) -> None:
    everything = ["session", "persistence", "projection", "projection-cache", "query"]
    async with open_world(without=everything, rows=[Row("more", "spied-brittle")]) as world:
        assert world.host.composition.failed == ()
