"""One turn: steps of a model request and its tools, until nothing is owed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import attrs

from heald import Cancelled, CancelToken, HealdError, describe
from heald_agent.answers import Answering
from heald_agent.context import (
    Sections,
    TurnTools,
    differs,
    sections_of,
    system_prompt,
    tools_of,
)
from heald_agent.contracts import Agent, TurnOutcome
from heald_agent.errors import ModelNotConfigured, StepLimit, TurnFailed
from heald_agent.ledger import Ledger
from heald_agent.limits import Limits
from heald_agent.requests import adapter_of, request_of
from heald_agent.tool_runs import ToolRuns
from heald_session import (
    APPEND,
    AssistantMessage,
    InboxMessage,
    StepEnd,
    StepStart,
    TurnContext,
    TurnEnd,
    TurnStart,
    UserMessage,
)

_logger = logging.getLogger("heald_agent")


@attrs.frozen
class Pace:
    """How much an agent may do at once, in a row, and for how long."""

    parallel_tools: int
    max_steps: int
    tool_timeout_s: float
    model_silence_s: float
    cancel_grace_s: float
    ask_deadline_s: float


@attrs.define
class Turn:
    """A turn that is about to open; whatever happens in it, `run` returns how it ended."""

    agent: Agent
    ledger: Ledger
    pace: Pace
    cancel: CancelToken
    persona: str | None
    number: int = 0
    step: int = 0
    text: str = ""
    """The text of the last answer."""
    _tools: TurnTools = attrs.field(init=False)
    _sections: Sections = attrs.field(init=False)

    async def run(self) -> TurnOutcome:
        """Open the turn, take its steps, close it, and make it durable."""
        try:
            self._open()
            await self._log_context()
            await self._steps()
            outcome = TurnOutcome(self.number, "completed", self.text)
        except Cancelled as error:
            outcome = self._aborted() if self.cancel.cancelled else self._failed(error)
        except asyncio.CancelledError:
            self.cancel.cancel("the program ended")
            self._close(self._aborted())
            raise
        except HealdError as error:
            outcome = self._failed(error)
        except Exception as error:
            _logger.exception("turn %d of %s failed", self.number, self.agent.session.id)
            outcome = self._failed(TurnFailed(describe(error)))
        return await self._saved(self._close(outcome))

    def _open(self) -> None:
        """Open the turn and read what it runs on, without letting anything come in between."""
        number = self.ledger.catch_up().turn + 1
        self.agent.session.append("turn/start", TurnStart(number))
        self.number = number
        self._tools = tools_of(self.agent)
        self._sections = sections_of(self.agent)
        self._claim(self.ledger.catch_up().pending())

    async def _log_context(self) -> None:
        """Log what the model is told besides messages, if it was told anything else last."""
        system = await system_prompt(self.agent, self.persona, self._sections, self._limits())
        context = TurnContext(system, list(self._tools.schemas))
        if differs(context, self.agent.session.context()):
            self.agent.session.append("turn/context", context)

    async def _steps(self) -> None:
        more = True
        while more:
            if self.step == self.pace.max_steps:
                raise StepLimit(self.pace.max_steps)
            self.step += 1
            called = await self._step()
            joining = self.ledger.catch_up().pending("steer")
            self._claim(joining)
            more = called or bool(joining)

    async def _step(self) -> bool:
        """Ask the model once and run what it calls; return whether it called anything."""
        self.cancel.check()
        model = self.agent.model
        if model is None:
            raise ModelNotConfigured
        adapter = adapter_of(self.agent.session.scope, model)
        self.agent.session.append("step/start", StepStart(self.number, self.step, model))
        await self.agent.session.flush()
        self.cancel.check()
        request = request_of(self.agent.session, model)
        silence = self.pace.model_silence_s
        answer = await self._answer(Answering(self.agent.session, adapter, request, silence))
        if answer.tool_calls:
            await self._tool_runs().run(answer.tool_calls)
        self.agent.session.append("step/end", StepEnd(self.number, self.step))
        self.cancel.check()
        return bool(answer.tool_calls)

    async def _answer(self, answering: Answering) -> AssistantMessage:
        """Get one answer and log it; of one that does not settle, the text that arrived."""
        try:
            answer = await answering.reply(self._limits())
        except BaseException:
            if (partial := answering.interrupted()) is not None:
                self._said(partial)
            raise
        self._said(answer)
        return answer

    def _said(self, answer: AssistantMessage) -> None:
        self.agent.session.append("assistant/message", answer, surface=APPEND)
        self.text = answer.text

    def _tool_runs(self) -> ToolRuns:
        return ToolRuns(
            agent=self.agent,
            tools=self._tools,
            cancel=self.cancel,
            pool=asyncio.Semaphore(self.pace.parallel_tools),
            timeout=self.pace.tool_timeout_s,
            grace=self.pace.cancel_grace_s,
        )

    def _limits(self) -> Limits:
        return Limits(self.cancel, grace=self.pace.cancel_grace_s)

    def _claim(self, messages: Iterable[InboxMessage]) -> None:
        for message in messages:
            said = UserMessage(message.id, message.text, message.sender)
            self.agent.session.append("user/message", said, surface=APPEND)

    def _aborted(self) -> TurnOutcome:
        return TurnOutcome(self.number, "aborted", self.text, self.cancel.cause)

    def _failed(self, error: HealdError) -> TurnOutcome:
        cause = f"{error.code}: {error.message()}"
        return TurnOutcome(self.number, "failed", self.text, cause, error)

    def _close(self, outcome: TurnOutcome) -> TurnOutcome:
        """Log the end of the turn, if it opened."""
        if not self.number:
            return outcome
        try:
            end = TurnEnd(self.number, outcome.outcome, outcome.cause)
            self.agent.session.append("turn/end", end)
        except HealdError as error:
            return outcome if outcome.error is not None else self._failed(error)
        return outcome

    async def _saved(self, outcome: TurnOutcome) -> TurnOutcome:
        """Make the turn durable; one that is not has failed, whatever its log says."""
        try:
            await self.agent.session.flush()
        except HealdError as error:
            return outcome if outcome.error is not None else self._failed(error)
        return outcome
