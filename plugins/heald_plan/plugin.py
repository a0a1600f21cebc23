"""The plugin of plan mode."""

from __future__ import annotations

from collections.abc import Iterable

from heald import NoConfig, Plugin, implements
from heald_agent import (
    Agent,
    AnyTool,
    PromptSection,
    ToolGuard,
    prompt_sections,
    tool_guards,
    tools,
)
from heald_commands import Command, commands
from heald_plan.command import PLAN_COMMAND
from heald_plan.events import PLAN_ENTERED, PLAN_LEFT
from heald_plan.leave_plan import LEAVE_PLAN
from heald_plan.mode import SECTION, is_on, refuse_changes
from heald_plan.projection import PLAN
from heald_projection import Unit, projections, units
from heald_session import EventType, event_types


class PlanPlugin(Plugin[NoConfig]):
    """Lets a session be in plan mode; where no row has it, that a log says so changes nothing."""

    requires = (projections,)

    @implements(tools)
    def tool(self) -> Iterable[AnyTool]:
        return (LEAVE_PLAN,)

    @implements(tool_guards)
    def guard(self) -> Iterable[ToolGuard]:
        return (refuse_changes,)

    @implements(prompt_sections)
    def section(self) -> Iterable[PromptSection]:
        return (PromptSection("plan-mode", _render),)

    @implements(commands)
    def command(self) -> Iterable[Command]:
        return (PLAN_COMMAND,)

    @classmethod
    @implements(event_types)
    def declare_events(cls) -> Iterable[EventType]:
        return (PLAN_ENTERED, PLAN_LEFT)

    @classmethod
    @implements(units)
    def declare_units(cls) -> Iterable[Unit]:
        return (PLAN,)


async def _render(agent: Agent) -> str:
    return SECTION if is_on(agent.session) else ""
