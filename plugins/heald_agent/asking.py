"""Asking a person: one ask at a time for each session, and none that waits for ever."""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import Literal

import attrs

from heald import Cancelled, CancelToken, HealdError
from heald_agent.asks import Answerer, Approval, Ask
from heald_agent.errors import AnswerInvalid, AskNotOpen
from heald_agent.events import AskDecided, AskOpened
from heald_agent.hookspecs import answerers, ask_opened
from heald_agent.limits import Limits, limited
from heald_session import Session, SessionClosed

Given = Literal["answered", "approved", "denied"]
"""What a person can make of an ask."""

NOBODY = "nobody is there to answer"
GONE = "the agent was disposed of"

_FITTING: dict[str, tuple[Given, ...]] = {
    "question": ("answered", "denied"),
    "approval": ("approved", "denied"),
}
_logger = logging.getLogger("heald_agent")


@attrs.frozen(eq=False)
class _Open:
    opened: AskOpened
    decided: asyncio.Future[AskDecided] = attrs.field(
        factory=lambda: asyncio.get_running_loop().create_future()
    )


class Asking:
    """The asks of one session: the open one, and those that wait until it is decided."""

    def __init__(self, session: Session, *, deadline_s: float, grace: float) -> None:
        self._session = session
        self._deadline_s = deadline_s
        self._grace = grace
        self._one = asyncio.Lock()
        self._open: _Open | None = None
        self._ended = False

    async def ask(self, ask: Ask, cancel: CancelToken | None) -> AskDecided:
        """Open an ask when none is, and return what came of it once that is durable.

        Raises `Cancelled`, or what the log raises when it takes no more.
        """
        if cancel is None:
            return await self._ask(ask, None)
        cancel.check()
        limits = Limits(cancel, grace=self._grace)
        return await limited(self._ask(ask, cancel), limits, f"ask of {self._session.id}")

    async def answer(self, id: str, outcome: Given, text: str | None, by: str) -> AskDecided:  # noqa: A002
        """Decide the open ask, and return when that is durable.

        Raises `AskNotOpen` or `AnswerInvalid`, or what the log raises; then nothing was decided.
        """
        open_ = self._open
        if open_ is None or open_.opened.id != id or open_.decided.done():
            raise AskNotOpen(self._session.id, id)
        self._check_fits(open_.opened, outcome, text)
        decided = self._decide(open_, AskDecided(id, outcome, by, text))
        await self._session.flush()
        return decided

    def end(self) -> None:
        """Let go of every ask, since the agent ends."""
        self._ended = True
        if self._open is not None:
            self._cancel(self._open, GONE)

    async def _ask(self, ask: Ask, cancel: CancelToken | None) -> AskDecided:
        async with self._one:
            if self._ended:
                raise SessionClosed(self._session.id)
            open_ = _Open(self._opened(ask))
            self._session.append("ask/opened", open_.opened)
            self._open = open_
            try:
                await self._wait(open_)
                await self._session.flush()
            except BaseException as error:
                self._cancel(open_, _why(error, cancel))
                raise
            finally:
                self._open = None
        return open_.decided.result()

    async def _wait(self, open_: _Open) -> None:
        """See that an ask is decided: by who is there, or by the deadline."""
        await self._session.flush()  # what people are shown is in the log
        if not _is_attended(self._session):
            self._settle(open_, "denied", "nobody", NOBODY)
            return
        self._session.scope.notify(ask_opened, self._session, open_.opened)
        left = (open_.opened.deadline - self._now()) / 1000
        await asyncio.wait({open_.decided}, timeout=max(left, 0))
        self._settle(open_, "expired", "deadline", f"nobody answered in {self._deadline_s:g} s")

    def _opened(self, ask: Ask) -> AskOpened:
        id_, deadline = uuid.uuid4().hex, self._now() + round(self._deadline_s * 1000)
        if isinstance(ask, Approval):
            return AskOpened(id_, "approval", ask.text, deadline, action=ask.action)
        return AskOpened(id_, "question", ask.text, deadline, options=list(ask.options))

    def _now(self) -> int:
        return self._session.scope.host.now()

    def _settle(
        self, open_: _Open, outcome: Literal["denied", "expired", "cancelled"], by: str, reason: str
    ) -> None:
        """Decide an ask that nobody else has decided."""
        if not open_.decided.done():
            self._decide(open_, AskDecided(open_.opened.id, outcome, by, reason=reason))

    def _cancel(self, open_: _Open, reason: str) -> None:
        try:
            self._settle(open_, "cancelled", "asker", reason)
        except HealdError as error:  # whoever resumes the session will say what came of the ask
            _logger.warning("ask %s of %s: %s", open_.opened.id, self._session.id, error)

    def _decide(self, open_: _Open, decided: AskDecided) -> AskDecided:
        self._session.append("ask/decided", decided)
        open_.decided.set_result(decided)
        return decided

    def _check_fits(self, opened: AskOpened, outcome: Given, text: str | None) -> None:
        if outcome not in _FITTING[opened.kind]:
            reason = f"it asks for {' or '.join(_FITTING[opened.kind])}"
            raise AnswerInvalid(self._session.id, opened.id, reason)
        if outcome == "answered" and text is None:
            raise AnswerInvalid(self._session.id, opened.id, "an answer has a text")


def _is_attended(session: Session) -> bool:
    return any(_attends(found.value, session) for found in session.scope.collect(answerers))


def _attends(answerer: Answerer, session: Session) -> bool:
    try:
        return answerer(session)
    except Exception:
        _logger.exception("an answerer failed; it is taken to be absent")
        return False


def _why(error: BaseException, cancel: CancelToken | None) -> str:
    if cancel is not None and cancel.cause is not None:
        return cancel.cause
    if isinstance(error, asyncio.CancelledError | Cancelled):
        return "the asker no longer waits"
    return str(error)
