"""Plugins that an entry point of a made-up distribution names, for the tests of sessions."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import msgspec

from heald import NoConfig, Plugin, RowContext, implements
from heald_session import (
    AppendGuard,
    Event,
    EventType,
    Proposal,
    Session,
    append_guards,
    event_appended,
    event_types,
    session_closed,
    session_opened,
    session_prepared,
)


class Note(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    stars: int = 0


class NotesPlugin(Plugin[NoConfig]):
    """Declares event types of its own."""

    @classmethod
    @implements(event_types)
    def types(cls) -> Iterable[EventType]:
        yield EventType("acme/note", Note, version=3, former=("acme/memo",))
        yield EventType("acme/vital", Note, required=True)
        yield EventType("acme/anything", object)


@attrs.frozen
class WitnessConfig:
    append_back: bool = False
    raises: bool = False


class WitnessPlugin(Plugin[WitnessConfig]):
    """Writes down what it hears."""

    def __init__(self, context: RowContext[WitnessConfig]) -> None:
        super().__init__(context)
        self.heard: list[tuple[str, str, int]] = []
        self.store_had: list[bool] = []
        self.errors: list[BaseException] = []

    def hear(self, what: str, session: Session) -> None:
        self.heard.append((what, session.id, session.end))

    @implements(session_prepared)
    def prepared(self, session: Session) -> None:
        self.hear("prepared", session)

    @implements(session_opened)
    def opened(self, session: Session) -> None:
        self.hear("opened", session)

    @implements(event_appended)
    def appended(self, session: Session, event: Event) -> None:
        self.hear(event.type, session)
        if self.config.append_back:
            try:
                session.append("acme/note", {"text": "me too"})
            except Exception as error:
                self.errors.append(error)
                raise
        if self.config.raises:
            raise RuntimeError("the witness fainted")

    @implements(session_closed)
    async def closed(self, session: Session) -> None:
        self.hear(f"closed at {session.flushed}", session)


@attrs.frozen
class GuardConfig:
    refuses: str = ""


class GuardPlugin(Plugin[GuardConfig]):
    """Refuses events of one type, and vandalises what it is shown."""

    def guard(self, proposal: Proposal) -> None:
        if isinstance(proposal.event.data, dict):
            proposal.event.data["text"] = "vandalised"
        if proposal.event.type == self.config.refuses:
            raise PermissionError(f"no {self.config.refuses} on a Sunday")

    @implements(append_guards)
    def guards(self) -> Iterable[AppendGuard]:
        return [self.guard]
