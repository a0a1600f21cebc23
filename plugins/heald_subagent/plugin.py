"""The row that runs and lists subagents."""

from __future__ import annotations

from collections.abc import Iterable

from heald import Plugin, RowContext, implements
from heald_projection import Unit, units
from heald_session import Event, EventType, Session, event_appended, event_types, session_closed
from heald_subagent.contracts import Subagents
from heald_subagent.delegation import Delegations, SubagentConfig
from heald_subagent.descriptor import DESCRIPTOR
from heald_subagent.hookspecs import subagents
from heald_subagent.identity import IDENTITY
from heald_subagent.timing import TIMING
from heald_subagent.turns import child_closed, turn_ended, turn_started


class SubagentPlugin(Plugin[SubagentConfig]):
    """Lets agents delegate; every service it uses is looked up at the call."""

    def __init__(self, context: RowContext[SubagentConfig]) -> None:
        super().__init__(context)
        self._delegations = Delegations(context.scope, context.config)

    @implements(subagents)
    def delegate(self) -> Subagents:
        return self._delegations

    @implements(event_appended)
    def follow_turns(self, session: Session, event: Event) -> None:
        if event.type == "turn/start":
            turn_started(session)
        elif event.type == "turn/end":
            turn_ended(session, event)

    @implements(session_closed)
    async def let_go(self, session: Session) -> None:
        child_closed(session)

    @classmethod
    @implements(event_types)
    def declare_events(cls) -> Iterable[EventType]:
        return (DESCRIPTOR,)

    @classmethod
    @implements(units)
    def declare_units(cls) -> Iterable[Unit]:
        return (IDENTITY, TIMING)
