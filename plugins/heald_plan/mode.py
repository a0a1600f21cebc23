"""Plan mode as the log has it: asked for through the projection, changed by events."""

from __future__ import annotations

from heald_agent import ToolRequest
from heald_plan.events import PLAN_ENTERED, PLAN_LEFT, PlanEntered, PlanLeft
from heald_plan.projection import KEY
from heald_projection import projections
from heald_session import Session

SECTION = """\
# Plan mode

Plan mode is on: look, think and plan, and change nothing. Tools that may change something are \
refused until the plan is approved. When you know what is to be done, call `leave_plan` with the \
whole plan; the person then approves it or says what is to be different."""


def is_on(session: Session) -> bool:
    """Say whether plan mode is on now."""
    active: bool = session.scope.require(projections).state(session, KEY)["active"]
    return active


def enter(session: Session) -> None:
    """Turn plan mode on, if it is off."""
    if not is_on(session):
        session.append(PLAN_ENTERED.name, PlanEntered())


def leave(session: Session, plan: str | None = None) -> None:
    """Turn plan mode off, if it is on; `plan` is what was approved."""
    if is_on(session):
        session.append(PLAN_LEFT.name, PlanLeft(plan))


def refuse_changes(request: ToolRequest) -> str | None:
    """Guard: refuse a tool that may change something while plan mode is on."""
    if not request.changes or not is_on(request.context.agent.session):
        return None
    return (
        f"plan mode is on, and {request.call.name!r} may change something; "
        f"go on planning, and call leave_plan with your plan"
    )
