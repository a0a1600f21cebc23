"""Plugins that an entry point of a made-up distribution names, for the tests of sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import msgspec

from heald import NoConfig, Plugin, RowContext, implements
from heald_projection import Unit, units
from heald_session import (
    AppendGuard,
    Event,
    EventType,
    Header,
    LogOffset,
    Proposal,
    Session,
    WindowHolder,
    append_guards,
    event_appended,
    event_types,
    session_closed,
    session_loading,
    session_opened,
    session_prepared,
    window_holders,
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
        self.copies_to: Session | None = None

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
        if self.copies_to is not None and self.copies_to is not session:
            self.copies_to.append(event.type, event.data)
        if self.config.raises:
            raise RuntimeError("the witness fainted")

    @implements(session_closed)
    async def closed(self, session: Session) -> None:
        self.hear(f"closed at {session.flushed}", session)


@attrs.frozen
class GuardConfig:
    refuses: str = ""
    appends: bool = False
    types: frozenset[str] | None = None


class GuardPlugin(Plugin[GuardConfig]):
    """Refuses events of one type, and vandalises what it is shown."""

    def __init__(self, context: RowContext[GuardConfig]) -> None:
        super().__init__(context)
        self.asked = 0

    def guard(self, proposal: Proposal) -> None:
        self.asked += 1
        if self.config.appends:
            proposal.session.append("acme/note", {"text": "me first"})
        if isinstance(proposal.event.data, dict):
            proposal.event.data["text"] = "vandalised"
        if proposal.event.type == self.config.refuses:
            raise PermissionError(f"no {self.config.refuses} on a Sunday")

    @implements(append_guards)
    def guards(self) -> Iterable[AppendGuard]:
        return [AppendGuard(self.guard, self.config.types)]


def _none_yet(_header: Header, cut: LogOffset) -> Any:
    return {"cut": cut, "count": 0, "sum": 0}


def _counted(state: Any, event: Event) -> Any:
    return {**state, "count": state["count"] + 1, "sum": state["sum"] + event.seq}


def _fainting(state: Any, event: Event) -> Any:
    if event.seq == 3:
        raise RuntimeError("I saw the third")
    return state


class UnitsPlugin(Plugin[NoConfig]):
    """Declares a unit that sees every event, and one that fails at the fourth."""

    @classmethod
    @implements(units)
    def folds(cls) -> Iterable[Unit]:
        for key, apply in (("acmeCount", _counted), ("acmeFaint", _fainting)):
            yield Unit(key=key, state_version=1, event_types=None, initial=_none_yet, apply=apply)


class HolderPlugin(Plugin[NoConfig]):
    """Needs what it is told to need, and writes down what it hears of a log that is loaded."""

    def __init__(self, context: RowContext[NoConfig]) -> None:
        super().__init__(context)
        self.needs: LogOffset | None = None
        self.raises = False
        self.loaded: list[int] = []
        self.most_in_memory = 0
        self.longest_batch = 0

    def needed(self, session: Session) -> LogOffset | None:
        if self.raises:
            raise RuntimeError("the holder fainted")
        return self.needs

    @implements(window_holders)
    def holders(self) -> Iterable[WindowHolder]:
        return [self.needed]

    @implements(session_loading)
    def loading(self, session: Session, events: Sequence[Event]) -> None:
        self.loaded += [event.seq for event in events]
        self.longest_batch = max(self.longest_batch, len(events))
        self.most_in_memory = max(self.most_in_memory, len(session.hot()))
