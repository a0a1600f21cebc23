"""The agent of one live session: it accepts messages, opens turns and keeps state for plugins."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal, TypeVar

from heald import CancelToken
from heald_agent.aside import LiveAside
from heald_agent.asking import Asking
from heald_agent.asks import Ask
from heald_agent.contracts import StateKey, TurnOutcome
from heald_agent.errors import AgentBusy, ModelNotConfigured
from heald_agent.events import AskDecided, ModelSelected
from heald_agent.ledger import Ledger
from heald_agent.loop import Pace, Turn
from heald_agent.requests import adapter_of
from heald_agent.states import States
from heald_session import InboxMessage, Session, SessionClosed, SessionId

T = TypeVar("T")
_logger = logging.getLogger("heald_agent")


class LiveAgent:
    """Runs a session's turns one after another, as long as messages are undelivered."""

    def __init__(
        self,
        session: Session,
        ledger: Ledger,
        pace: Pace,
        *,
        model: str | None,
        denied_tools: frozenset[str],
        persona: str | None,
        leave: Callable[[LiveAgent], Awaitable[None]],
    ) -> None:
        self.session = session
        self.model = model
        self.denied_tools = denied_tools
        self.running = False
        self._persona = persona
        self.ledger = ledger
        self._pace = pace
        self.asking = Asking(session, deadline_s=pace.ask_deadline_s, grace=pace.cancel_grace_s)
        self._leave = leave
        self._last = ledger.last
        self._accepting = 0
        self._busy: asyncio.Future[None] | None = None
        """Done when the turns that run are, or the aside; nothing else runs before."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._cancel = CancelToken()
        self._states = States()
        self._ending: asyncio.Task[None] | None = None

    @property
    def ending(self) -> bool:
        """Whether the agent is being disposed of, or was."""
        return self._ending is not None

    def use_model(self, model: str, *, chosen: bool = True) -> None:
        adapter_of(self.session.scope, model)
        if chosen and model != self.ledger.catch_up().chosen:
            self.session.append("model/selected", ModelSelected(model))
        self.model = model
        self.deliver()

    def state(self, key: StateKey[T]) -> T:
        self._check_open()
        return self._states.of(self, key)

    def leave_preset(self, leaving: AsyncExitStack) -> None:
        """Forget what rows keep that may be gone; it is undone with the stack."""
        self._states.take(leaving, every=False)

    async def send(
        self,
        text: str,
        *,
        lane: Literal["queued", "steer"] = "queued",
        sender: SessionId | None = None,
    ) -> str:
        self._check_open()
        if self.model is None:
            raise ModelNotConfigured
        message = InboxMessage(uuid.uuid4().hex, text, lane, sender)
        self.session.append("inbox/message", message)
        self._accepting += 1
        self._idle.clear()
        try:
            await self.session.flush()
            self.deliver()
        finally:
            self._accepting -= 1
            self._rest()
        return message.id

    def deliver(self) -> None:
        """See that undelivered messages are delivered: by the open turn, or by a new one."""
        if self._busy is None and not self.ending and self.ledger.catch_up().pending():
            self._idle.clear()
            name = f"turns of {self.session.id}"
            self._busy = asyncio.create_task(self._turns(), name=name)

    async def ask(self, ask: Ask, *, cancel: CancelToken | None = None) -> AskDecided:
        self._check_open()
        return await self.asking.ask(ask, cancel)

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[LiveAside]:
        self._check_open()
        if self._busy is not None:
            raise AgentBusy(self.session.id)
        if self.model is None:
            raise ModelNotConfigured
        self._busy = done = asyncio.get_running_loop().create_future()
        self._idle.clear()
        self._cancel = CancelToken()
        try:
            yield LiveAside(self.session, self.model, self._cancel, self._pace)
        finally:
            self._busy = None
            done.set_result(None)
            self.deliver()
            self._rest()

    async def settled(self) -> TurnOutcome:
        while not self._idle.is_set():
            await self._idle.wait()
        return self._last

    def cancel(self, cause: str) -> None:
        if self._busy is not None:
            self._cancel.cancel(cause)

    async def dispose(self) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(), name=f"ending {self.session.id}")
        await asyncio.shield(self._ending)

    def _check_open(self) -> None:
        if self.ending or self.session.closed:
            raise SessionClosed(self.session.id)

    async def _turns(self) -> None:
        try:
            while not self.ending and (pending := self.ledger.catch_up().pending()):
                await self._turn()
                if self.ledger.catch_up().pending()[: len(pending)] == pending:
                    break  # it could not even open, and another would not either
        finally:
            self._busy = None
            self._rest()

    async def _turn(self) -> None:
        self._cancel = CancelToken()
        self.running = True
        turn = Turn(self, self.ledger, self._pace, self._cancel, self._persona)
        try:
            self._last = await turn.run()
        finally:
            self.running = False

    def _rest(self) -> None:
        if self._busy is None and not self._accepting:
            self._idle.set()

    async def _end(self) -> None:
        self._cancel.cancel("the agent was disposed of")
        if self._busy is not None:
            await asyncio.wait({self._busy})
        self.asking.end()
        states = AsyncExitStack()
        self._states.take(states, every=True)
        try:
            await states.aclose()
        except Exception:
            _logger.exception("state of the agent of %s was not undone cleanly", self.session.id)
        await self._leave(self)
