"""Cancellation that a caller holds and a callee looks at."""

from __future__ import annotations

import asyncio
import gc

import pytest

from heald import Cancelled, CancelToken, raise_if_cancelled


def test_the_first_cause_wins_and_check_raises_it() -> None:
    token = CancelToken()
    token.check()
    token.cancel("because")
    token.cancel("too late")
    assert token.cancelled
    assert token.cause == "because"
    with pytest.raises(Cancelled, match="because") as caught:
        token.check()
    assert (caught.value.code, caught.value.exit_code) == ("CANCELLED", 130)


def test_a_callee_looks_at_a_token_that_may_be_absent() -> None:
    token = CancelToken()
    raise_if_cancelled(None)
    raise_if_cancelled(token)
    token.cancel("because")
    with pytest.raises(Cancelled, match="because"):
        raise_if_cancelled(token)


def test_a_child_is_cancelled_with_its_parent_and_not_the_other_way() -> None:
    parent = CancelToken()
    child = CancelToken(parent)
    grandchild = CancelToken(child)
    other = CancelToken(parent)
    other.cancel("alone")
    assert parent.cause is None
    parent.cancel("all")
    assert [t.cause for t in (parent, child, grandchild, other)] == ["all", "all", "all", "alone"]
    assert CancelToken(parent).cause == "all"


def test_children_hear_before_their_parents_listeners() -> None:
    heard: list[str] = []
    parent = CancelToken()
    parent.on_cancel(lambda: heard.append("parent"))
    child = CancelToken(parent)
    child.on_cancel(lambda: heard.append("child"))
    parent.cancel()
    assert heard == ["child", "parent"]


def test_a_grandchild_hears_although_nobody_holds_the_token_between() -> None:
    parent = CancelToken()
    grandchild = CancelToken(CancelToken(parent))
    gc.collect()
    parent.cancel("all")
    assert grandchild.cause == "all"


def test_a_parent_that_lives_long_does_not_gather_the_tokens_of_finished_work() -> None:
    parent = CancelToken()
    for _ in range(100):
        CancelToken(parent).on_cancel(lambda: None)
    gc.collect()
    assert len(parent._children) == 0
    assert len(parent._listeners) == 0


def test_a_listener_hears_once_even_if_added_late_and_not_if_forgotten() -> None:
    heard: list[str] = []
    token = CancelToken()
    owner = object()
    token.on_cancel(lambda: heard.append("forgotten"), owner=owner)
    token.forget(owner)
    token.forget(owner)
    token.on_cancel(lambda: heard.append("early"))
    token.cancel()
    token.cancel()
    token.on_cancel(lambda: heard.append("late"))
    assert heard == ["early", "late"]


def test_a_listener_that_raises_does_not_keep_the_others_from_hearing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[str] = []
    token = CancelToken()

    def bad() -> None:
        raise RuntimeError

    token.on_cancel(bad)
    token.on_cancel(lambda: heard.append("good"))
    token.cancel()
    assert heard == ["good"]
    assert len(caplog.records) == 1


async def test_a_task_is_cancelled_inside_the_block_and_left_alone_after_it() -> None:
    token = CancelToken()

    async def work() -> str:
        task = asyncio.current_task()
        assert task
        try:
            with token.cancelling(task):
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "cancelled"
        return "done"

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    token.cancel()
    assert await task == "cancelled"

    free = CancelToken()
    task = asyncio.ensure_future(asyncio.sleep(0, "done"))
    with free.cancelling(task):
        pass
    free.cancel()
    assert await task == "done"


async def test_a_future_is_done_once_the_token_is_cancelled_and_is_forgotten_after_the_block() -> (
    None
):
    token = CancelToken()
    with token.as_future() as unwanted:
        assert not unwanted.done()
        asyncio.get_running_loop().call_soon(token.cancel)
        await asyncio.wait({unwanted})
        assert token.cancelled
    with token.as_future() as unwanted:
        assert unwanted.done()

    other = CancelToken()
    with other.as_future() as unwanted:
        pass
    other.cancel()
    assert not unwanted.done()
