"""What an agent must know of its log: messages not yet delivered, and how the last turn went."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal
from weakref import ReferenceType, ref

import attrs
import msgspec

from heald_agent.contracts import TurnOutcome
from heald_agent.events import AskDecided, AskOpened, ModelSelected
from heald_session import (
    AssistantMessage,
    Event,
    InboxMessage,
    LogOffset,
    Session,
    StepStart,
    TurnEnd,
    TurnStart,
    UserMessage,
    after,
    before,
)

_logger = logging.getLogger("heald_agent")
Lane = Literal["queued", "steer"]


def _weakly(session: Session) -> ReferenceType[Session]:
    return ref(session)


@attrs.define
class Ledger:
    """A fold of a session's events; `catch_up` reads what was appended since.

    Messages that a fork inherited undelivered are the source's to deliver, not the fork's.
    """

    _session: ReferenceType[Session] = attrs.field(converter=_weakly)
    offset: LogOffset = LogOffset(0)
    turn: int = 0
    model: str | None = None
    """The model of the last step."""
    chosen: str | None = None
    """The model that a person chose last."""
    open_ask: str | None = None
    """The ask that is open; one that a fork inherited is not the fork's."""
    last: TurnOutcome = attrs.field(factory=lambda: TurnOutcome(0, "completed", ""))
    _pending: dict[str, InboxMessage] = attrs.field(factory=dict)
    _text: str = ""

    def feed(self, events: Iterable[Event]) -> None:
        """Fold the next events of the log while it is loaded; others are passed over."""
        for event in events:
            if before(event.seq) == self.offset:
                self._apply(event)

    @property
    def session(self) -> Session:
        """Whose log it follows; a ledger that waits for an agent keeps no session alive."""
        session = self._session()
        assert session is not None  # noqa: S101 - whoever uses the ledger has the session
        return session

    async def read(self) -> None:
        """Fold what was appended since, from storage where it is no longer in memory."""
        while self.offset < self.session.hot_from:
            async for event in self.session.read(self.offset, self.session.hot_from):
                self._apply(event)
        self.catch_up()

    def catch_up(self) -> Ledger:
        """Fold what was appended since and is in memory, and return the ledger."""
        for event in self.session.hot(self.offset):
            self._apply(event)
        return self

    def pending(self, lane: Lane | None = None) -> Sequence[InboxMessage]:
        """Return accepted, undelivered messages in order, of one lane or of both."""
        return [m for m in self._pending.values() if lane is None or m.lane == lane]

    def _apply(self, event: Event) -> None:
        self.offset = after(event.seq)
        fold = _FOLDS.get(event.type)
        if fold is None:
            return
        try:
            fold(self, event)
        except msgspec.ValidationError as error:
            _logger.warning("%s: event %d was passed over: %s", self.session.id, event.seq, error)

    def _accepted(self, event: Event) -> None:
        if self.session.is_own(event.seq):
            message = event.data_as(InboxMessage)
            self._pending[message.id] = message

    def _delivered(self, event: Event) -> None:
        self._pending.pop(event.data_as(UserMessage).id, None)

    def _turn_opened(self, event: Event) -> None:
        self.turn = event.data_as(TurnStart).turn
        self._text = ""

    def _step_opened(self, event: Event) -> None:
        self.model = event.data_as(StepStart).model

    def _model_chosen(self, event: Event) -> None:
        self.chosen = event.data_as(ModelSelected).model

    def _asked(self, event: Event) -> None:
        if self.session.is_own(event.seq):
            self.open_ask = event.data_as(AskOpened).id

    def _decided(self, event: Event) -> None:
        if self.open_ask == event.data_as(AskDecided).ask:
            self.open_ask = None

    def _answered(self, event: Event) -> None:
        self._text = event.data_as(AssistantMessage).text

    def _turn_closed(self, event: Event) -> None:
        if not self.session.is_own(event.seq):
            return  # the outcome of a turn that a fork inherited is the source's
        end = event.data_as(TurnEnd)
        self.last = TurnOutcome(end.turn, end.outcome, self._text, end.cause)


_FOLDS: dict[str, Callable[[Ledger, Event], Any]] = {
    "inbox/message": Ledger._accepted,  # noqa: SLF001 - the table of the class above
    "user/message": Ledger._delivered,  # noqa: SLF001
    "turn/start": Ledger._turn_opened,  # noqa: SLF001
    "step/start": Ledger._step_opened,  # noqa: SLF001
    "assistant/message": Ledger._answered,  # noqa: SLF001
    "turn/end": Ledger._turn_closed,  # noqa: SLF001
    "model/selected": Ledger._model_chosen,  # noqa: SLF001
    "ask/opened": Ledger._asked,  # noqa: SLF001
    "ask/decided": Ledger._decided,  # noqa: SLF001
}
