"""What a listing needs before it reads anything, and how it ends when it is not wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from heald import Cancelled, CancelToken, HealdError, Row
from heald_session import SessionId

if TYPE_CHECKING:
    from tests.plugins.subagent.conftest import OpenWorld, World


def continuable(label: str = "helper") -> dict[str, Any]:
    return {"version": 2, "mode": "continuable", "provider": "spawn", "label": label}


BOTH = pytest.mark.parametrize("call", ["children", "descendants"])


def ask(world: World, call: str) -> Callable[..., Awaitable[list[Any]]]:
    listing: Callable[..., Awaitable[list[Any]]] = getattr(world, call)
    return listing


@BOTH
@pytest.mark.parametrize(
    ("without", "code"),
    [
        (["projection", "projection-cache"], "SUBAGENT_CONTROL_PROJECTIONS_UNAVAILABLE"),
        (["query"], "SUBAGENT_CONTROL_QUERY_UNAVAILABLE"),
        (["session", "projection-cache"], "SUBAGENT_CONTROL_SESSION_STORE_UNAVAILABLE"),
        (
            ["session", "projection", "projection-cache", "query"],
            "SUBAGENT_CONTROL_PROJECTIONS_UNAVAILABLE",
        ),
        (["session", "projection-cache", "query"], "SUBAGENT_CONTROL_SESSION_STORE_UNAVAILABLE"),
    ],
)
async def test_a_service_that_is_absent_has_a_code_of_its_own_though_there_are_no_children(
    open_world: OpenWorld, call: str, without: list[str], code: str
) -> None:
    async with open_world(without=without) as world:
        with pytest.raises(HealdError) as caught:
            await ask(world, call)()
        assert caught.value.code == code
        assert world.spies.listings == 0


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


async def test_an_abort_with_four_observations_in_flight_leaves_none_running(
    world: World,
) -> None:
    token = CancelToken()
    arrived = asyncio.Semaphore(0)
    gate = asyncio.Event()

    async def stay(_: SessionId) -> None:
        arrived.release()
        await gate.wait()

    world.spies.cache = lambda _: None
    world.spies.while_observing = stay
    for ident in "abcdef":
        await world.child(ident, continuable(), live=False)
    listing = asyncio.create_task(world.children(cancel=token))
    for _ in range(4):
        await arrived.acquire()
    assert world.spies.in_flight == 4
    token.cancel()
    gate.set()
    with pytest.raises(Cancelled):
        await listing
    assert world.spies.in_flight == 0
    assert len(world.spies.observed) == 4


async def test_cancelling_the_callers_task_ends_the_workers_first(world: World) -> None:
    arrived = asyncio.Semaphore(0)
    let_go: list[str] = []

    async def stay(ident: SessionId) -> None:
        arrived.release()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            let_go.append(ident)

    world.spies.cache = lambda _: None
    world.spies.while_observing = stay
    for ident in "abcde":
        await world.child(ident, continuable(), live=False)
    listing = asyncio.create_task(world.children())
    for _ in range(4):
        await arrived.acquire()
    listing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listing
    assert len(let_go) == 4
    assert world.spies.in_flight == 0


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
