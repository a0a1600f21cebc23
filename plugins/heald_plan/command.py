"""The slash command `/plan`: a person turns plan mode on and off."""

from __future__ import annotations

from heald_commands import Command, CommandCall
from heald_plan.errors import PlanArgumentInvalid
from heald_plan.mode import enter, is_on, leave


async def _plan(call: CommandCall) -> str:
    wanted = _wanted(call.arguments.lower(), on=is_on(call.session))
    (enter if wanted else leave)(call.session)
    return f"Plan mode is {'on' if wanted else 'off'}."


def _wanted(argument: str, *, on: bool) -> bool:
    if argument not in ("", "on", "off"):
        raise PlanArgumentInvalid(argument)
    return argument == "on" if argument else not on


PLAN_COMMAND = Command("plan", "Turn plan mode on or off: /plan [on|off]", _plan)
