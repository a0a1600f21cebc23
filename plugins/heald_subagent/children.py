"""The children that a live agent runs: what they are doing, and how the agent hears of it.

A child settles when no turn of it is open and no message to it is undelivered. Each settlement is
reported to the parent once: by a `wait` that returns it, or else by a message in the parent's
inbox. The message goes out in the first moment in which the settlement is unreported, nobody waits
for it and no turn of the parent is open: until then the parent may still ask, and could not read
the message anyway. A settlement that the parent itself caused by cancelling is not reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import attrs

from heald import CancelToken, HealdError
from heald_agent import Agent, StateKey
from heald_session import SessionClosed, SessionId
from heald_subagent.contracts import ChildResult
from heald_subagent.errors import SubagentLimit
from heald_subagent.results import notice, result_of
from heald_subagent.runs import Child, Errand, Run

_logger = logging.getLogger("heald_subagent")


@attrs.define(eq=False)
class Children:
    """The children of one live agent, kept with the agent and ended with it."""

    parent: Agent
    turn_open: bool
    """Whether a turn of the parent is open."""
    continuable: dict[SessionId, Child] = attrs.field(factory=dict)
    errands: dict[SessionId, Errand] = attrs.field(factory=dict)
    resuming: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    """Held while a child is brought back, so that two messages do not bring it back twice."""
    ended: bool = False
    _reserved: int = 0
    _unreported: dict[Run, Child] = attrs.field(factory=dict)
    _tasks: set[asyncio.Task[None]] = attrs.field(factory=set)

    @contextmanager
    def slot(self, allowed: int) -> Iterator[None]:
        """Hold a place among the running children; raise `SubagentLimit` if none is free."""
        running = [c.id for c in self.continuable.values() if not c.run.ended.done()]
        if self._reserved + len(running) >= allowed:
            raise SubagentLimit("breadth", allowed, (*self.errands, *running))
        self._reserved += 1
        try:
            yield
        finally:
            self._reserved -= 1

    def add(self, child: Child) -> None:
        """Take a child that has accepted a message, and follow its run."""
        self.continuable[child.id] = child
        self._follow(child)

    async def send_first(self, child: Child, text: str) -> None:
        """Take a child that was brought back, and have it accept a message."""
        try:
            await self._send(child, text)
        except BaseException:
            child.run.reported = True  # it settled before its parent's time, if ever
            raise
        finally:
            self.continuable[child.id] = child

    async def send(self, child: Child, text: str, allowed: int) -> None:
        """Have a live child accept a message; if it has settled, that begins another run."""
        if not child.run.ended.done():
            child.run.cancelled, child.run.reported = None, False  # it is wanted again
            await self._send(child, text)
            return
        with self.slot(allowed):
            await self._send(child, text)
            self.begin(child)

    async def wait(
        self,
        children: Sequence[Child],
        limit: float | None,  # in seconds
        cancel: CancelToken | None,
    ) -> list[ChildResult]:
        """Wait for the present runs of children, and report those that ended by returning them."""
        runs = [(child, child.run) for child in children]
        for _, run in runs:
            run.waiting += 1
        try:
            await _all_ended([run.ended for _, run in runs], limit, cancel or CancelToken())
            return [self._collected(child, run) for child, run in runs]
        finally:
            for child, run in runs:
                run.waiting -= 1
                self._report_if_due(child, run)

    def begin(self, child: Child) -> None:
        """Take note that a child works: by a message from its parent, or from its own children."""
        if child.run.ended.done():
            child.run = Run()
        elif child.run.cancelled is not None:
            child.agent.cancel(child.run.cancelled)  # its turn was not open when it was cancelled
        self._follow(child)

    def turn_started(self) -> None:
        """Take note that the parent's turn is open."""
        self.turn_open = True

    def turn_ended(self) -> None:
        """Take note that the parent's turn is over, and report what it did not wait for."""
        self.turn_open = False
        for run, child in tuple(self._unreported.items()):
            self._report_if_due(child, run)

    def turn_aborted(self, cause: str) -> None:
        """Take note that the parent's turn was cancelled; its children go with it, unreported.

        What settled before stays unreported until the parent asks or a later turn of it is over:
        a message now would set to work again what somebody just stopped.
        """
        self.turn_open = False
        self.cancel_running(cause)

    def cancel_running(self, cause: str) -> None:
        """Cancel everything that works below the parent, the deepest first."""
        for errand in self.errands.values():
            _cancel_below(errand.agent, cause)
            errand.cancel.cancel(cause)
        for child in self.continuable.values():
            _cancel_below(child.agent, cause)
            if not child.run.ended.done():
                child.run.reported = True
                child.run.cancelled = cause
                child.agent.cancel(cause)

    def closed(self, id: SessionId, reason: str) -> None:  # noqa: A002 - what it is
        """Let go of a child whose session is closed; who waits for it hears why it ended."""
        child = self.continuable.pop(id, None)
        if child is not None and not child.run.ended.done():
            self._settle(child, ChildResult(id=id, outcome="aborted", text=reason))

    async def close(self) -> None:
        """End every child, and with each its own, before the parent ends."""
        self.ended = True
        self.cancel_running("its parent ended")
        agents = [e.agent for e in self.errands.values()]
        agents += [child.agent for child in self.continuable.values()]
        ended = await asyncio.gather(*(a.dispose() for a in agents), return_exceptions=True)
        for agent, error in zip(agents, ended, strict=True):
            if error is not None:
                _logger.error("child %s did not end cleanly: %s", agent.session.id, error)
        followers = [c.follower for c in self.continuable.values() if c.follower is not None]
        for task in (tasks := [*self._tasks, *followers]):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, child: Child, text: str) -> None:
        child.sending += 1
        try:
            await child.agent.send(text, sender=self.parent.session.id)
        finally:
            child.sending -= 1
            if not child.run.ended.done():
                self._follow(child)

    def _follow(self, child: Child) -> None:
        if child.follower is None or child.follower.done():
            name = f"following {child.id}"
            child.follower = asyncio.create_task(self._until_settled(child), name=name)

    async def _until_settled(self, child: Child) -> None:
        """Wait for the end of a run; whoever sends to the child meanwhile follows it anew."""
        try:
            outcome = await child.agent.settled()
            while child.agent.running:
                outcome = await child.agent.settled()
            result = result_of(child.id, outcome)
        except Exception as error:  # whoever waits must not wait for ever
            _logger.exception("child %s was lost", child.id)
            result = ChildResult(id=child.id, outcome="failed", text=str(error))
        if not child.sending:
            self._settle(child, result)

    def _settle(self, child: Child, result: ChildResult) -> None:
        if not child.run.ended.done():
            child.run.ended.set_result(result)
            self._unreported[child.run] = child
            self._report_if_due(child, child.run)

    def _collected(self, child: Child, run: Run) -> ChildResult:
        if not run.ended.done():
            return ChildResult(id=child.id, outcome="running", text="it is still working")
        run.reported = True
        return run.ended.result()

    def _report_if_due(self, child: Child, run: Run) -> None:
        if run.reported:
            self._unreported.pop(run, None)
        elif run.ended.done() and not run.waiting and not self.turn_open:
            run.reported = True
            self._unreported.pop(run, None)
            self._spawn(self._report(child, run.ended.result()))

    async def _report(self, child: Child, result: ChildResult) -> None:
        try:
            await self.parent.send(notice(child.label, result), sender=child.id)
        except SessionClosed:
            pass  # the parent is ending; what its child said is in the child's log
        except HealdError as error:
            _logger.warning("%s was not told of %s: %s", self.parent.session.id, child.id, error)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def children_of(agent: Agent) -> Children | None:
    """Return the children of an agent; None if it is ending."""
    try:
        return agent.state(CHILDREN)
    except SessionClosed:
        return None


def _cancel_below(agent: Agent, cause: str) -> None:
    if (children := children_of(agent)) is not None:
        children.cancel_running(cause)


def _make(agent: Agent, stack: AsyncExitStack) -> Children:
    children = Children(agent, turn_open=agent.running)
    stack.push_async_callback(children.close)
    return children


CHILDREN = StateKey("subagent.children", _make, lasting=True)


async def _all_ended(
    runs: Sequence[asyncio.Future[ChildResult]], limit: float | None, cancel: CancelToken
) -> None:
    """Wait until every run has ended or the limit is over; raise `Cancelled` if unwanted."""
    with cancel.as_future() as stop:
        try:
            async with asyncio.timeout(limit):
                while not stop.done() and (left := [run for run in runs if not run.done()]):
                    first: set[asyncio.Future[Any]] = {*left, stop}
                    await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            pass
    cancel.check()
