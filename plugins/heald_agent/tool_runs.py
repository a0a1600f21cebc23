"""The tool calls of one step: run side by side where they may, answered in the model's order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby

import attrs

from heald import CancelToken
from heald_agent.context import TurnTools
from heald_agent.contracts import Agent
from heald_agent.limits import Limits
from heald_agent.tool import ToolReply
from heald_agent.tool_calls import Runnable, execute, prepare, refusal, refused_by_guard
from heald_session import APPEND, ToolCall, ToolResult, ToolStart


@attrs.define
class ToolRuns:
    """Runs the calls of a step; afterwards every one has exactly one result in the log.

    A call that no body may run beside waits for those before it and holds up those after it. If
    the barrier before a body fails, that body and all that have not started do not run.
    """

    agent: Agent
    tools: TurnTools
    cancel: CancelToken
    pool: asyncio.Semaphore
    timeout: float
    grace: float
    _broken: Exception | None = None
    """What keeps the log from taking what it must."""
    _results: dict[int, ToolReply] = attrs.field(factory=dict)
    _answered: int = 0

    async def run(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls and log their results; raises what the log refused."""
        prepared = [prepare(self.agent, self.tools, call, self._limits(call)) for call in calls]
        numbered = list(enumerate(prepared))
        for parallel, group in groupby(numbered, key=lambda item: _may_overlap(item[1])):
            members = list(group)
            if parallel and len(members) > 1:
                await self._together(calls, members)
            else:
                for number, item in members:
                    await self._one(calls, number, item)
        if self._broken is not None:
            raise self._broken

    def _limits(self, call: ToolCall) -> Limits:
        tool = self.tools.available.get(call.name)
        own = tool.timeout if tool is not None else None
        return Limits(self.cancel, self.timeout if own is None else own, self.grace)

    async def _together(
        self, calls: Sequence[ToolCall], members: Sequence[tuple[int, Runnable | ToolReply]]
    ) -> None:
        async with asyncio.TaskGroup() as group:
            for number, item in members:
                group.create_task(self._one(calls, number, item))

    async def _one(
        self, calls: Sequence[ToolCall], number: int, item: Runnable | ToolReply
    ) -> None:
        if isinstance(item, Runnable):
            async with self.pool:
                item = await self._started(item)
        self._results[number] = item
        self._answer(calls)

    async def _started(self, runnable: Runnable) -> ToolReply:
        """Take a call past its guards and the barrier, and run it."""
        if (why_not := self._why_not()) is not None:
            return why_not
        if (refused := refused_by_guard(runnable)) is not None:
            return refused
        call = runnable.request.call
        try:
            self.agent.session.append("tool/start", ToolStart(call.id, call.name))
            await self.agent.session.flush()
        except Exception as error:  # noqa: BLE001 - `run` raises it when no call is open any more
            self._broken = self._broken or error
        if (why_not := self._why_not()) is not None:
            return why_not
        return await execute(runnable, self._limits(call))

    def _why_not(self) -> ToolReply | None:
        if self.cancel.cancelled:
            return refusal(f"Not run: the turn was cancelled ({self.cancel.cause}).")
        if self._broken is not None:
            return refusal(f"Not run: {self._broken}")
        return None

    def _answer(self, calls: Sequence[ToolCall]) -> None:
        """Log the results that are next in order."""
        while (reply := self._results.get(self._answered)) is not None:
            call = calls[self._answered]
            self._answered += 1
            result = ToolResult(call.id, call.name, reply.text, is_error=reply.is_error)
            try:
                self.agent.session.append("tool/result", result, surface=APPEND)
            except Exception as error:  # noqa: BLE001 - as above
                self._broken = self._broken or error


def _may_overlap(item: Runnable | ToolReply) -> bool:
    """Say whether a call may run beside others; one that does not run at all may."""
    return not isinstance(item, Runnable) or item.tool.parallel
