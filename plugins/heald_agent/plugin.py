"""The plugin that runs agents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import attrs

from heald import Plugin, RowContext, host_closing, implements, setting
from heald_agent.contracts import Agents
from heald_agent.events import EVENT_TYPES
from heald_agent.hookspecs import agents
from heald_agent.loop import Pace
from heald_agent.model_command import model_command
from heald_agent.projection import UNITS
from heald_agent.registry import LiveAgents
from heald_commands import Command, commands
from heald_preset import preset_left
from heald_projection import Unit, units
from heald_session import (
    Event,
    EventType,
    Session,
    WindowHolder,
    event_appended,
    event_types,
    session_closed,
    session_loading,
    session_opened,
    session_store,
    window_holders,
)


def _positive(_: Any, field: attrs.Attribute[Any], value: float) -> None:
    if value <= 0:
        raise ValueError(f"{field.name} must be more than 0")


def _finite(_: Any, field: attrs.Attribute[Any], value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{field.name} must be more than 0, and an end")


@attrs.frozen
class AgentConfig:
    """How agents work when nobody says otherwise."""

    model: str | None = None
    """The model of agents for which none is named, as `adapter:model`."""
    parallel_tools: int = setting(default=8, validator=_positive)
    """How many calls of tools that allow it run beside each other."""
    max_steps: int = setting(default=100, validator=_positive)
    """How many model requests a turn may make."""
    tool_timeout_s: float = setting(default=1800.0, validator=_positive)
    """How long a tool may run that sets no limit of its own."""
    model_silence_s: float = setting(default=300.0, validator=_positive)
    """How long a model may send nothing before its request has failed."""
    cancel_grace_s: float = setting(default=5.0, validator=_positive)
    """How long what was cancelled may take to end before it is left behind."""
    ask_deadline_s: float = setting(default=300.0, validator=_finite)
    """How long a person may take to answer before what was asked for is denied."""


class AgentPlugin(Plugin[AgentConfig]):
    """Provides the agents of the process."""

    requires = (session_store,)

    def __init__(self, context: RowContext[AgentConfig]) -> None:
        super().__init__(context)
        config = context.config
        pace = Pace(
            parallel_tools=config.parallel_tools,
            max_steps=config.max_steps,
            tool_timeout_s=config.tool_timeout_s,
            model_silence_s=config.model_silence_s,
            cancel_grace_s=config.cancel_grace_s,
            ask_deadline_s=config.ask_deadline_s,
        )
        self._agents = LiveAgents(context.scope, pace, config.model)

    @implements(agents)
    def provide_agents(self) -> Agents:
        """Return the one registry of this host."""
        return self._agents

    @implements(session_loading)
    def fold_loaded(self, session: Session, events: Sequence[Event]) -> None:
        """Follow the log of a session that may get an agent."""
        self._agents.load(session, events)

    @implements(session_opened)
    def expire_asks(self, session: Session) -> None:
        """Say that an ask of a program that has ended will not be answered."""
        self._agents.opened(session)

    @implements(event_appended)
    def follow(self, session: Session, event: Event) -> None:
        """Follow the log of a session that has an agent."""
        self._agents.appended(session)

    @implements(window_holders)
    def hold_what_is_not_followed(self) -> Iterable[WindowHolder]:
        """Keep in memory what an agent has not followed yet."""
        return [self._agents.needed]

    @implements(session_closed)
    async def end_agent(self, session: Session) -> None:
        """End the agent of a session that leaves the store."""
        await self._agents.closing(session)

    @implements(preset_left)
    def leave_preset(self, session: Session, leaving: AsyncExitStack) -> None:
        """Undo what an agent has of rows that it no longer runs on."""
        self._agents.moved(session, leaving)

    @implements(host_closing)
    async def end_agents(self) -> None:
        """Dispose of every agent while what its turn needs still runs."""
        await self._agents.close()

    async def stop(self) -> None:
        """Dispose of the agents that were made since, or of all if only this row stops."""
        await self._agents.close()

    @implements(commands)
    def choose_model(self) -> Iterable[Command]:
        """Contribute `/model`."""
        return (model_command(self._agents),)

    @classmethod
    @implements(event_types)
    def declare_events(cls) -> Iterable[EventType]:
        """Declare what is asked of people, and the choice of a model."""
        return EVENT_TYPES

    @classmethod
    @implements(units)
    def declare_units(cls) -> Iterable[Unit]:
        """Declare the ask that is open, and the model that was chosen."""
        return UNITS
