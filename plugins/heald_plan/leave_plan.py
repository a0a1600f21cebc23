"""The tool `leave_plan`: a plan that a person approves before anything is changed."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from heald_agent import Approval, AskDecided, Tool, ToolContext, ToolError
from heald_plan.mode import is_on, leave


class LeaveArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the model gives."""

    plan: Annotated[str, msgspec.Meta(min_length=1, description="The whole plan, as Markdown.")]


async def _leave(arguments: LeaveArguments, context: ToolContext) -> str:
    session = context.agent.session
    if not is_on(session):
        raise ToolError("Plan mode is not on, so there is nothing to leave; go on.")
    approval = Approval(
        text=f"Leave plan mode and carry out this plan?\n\n{arguments.plan}",
        action={"tool": "leave_plan", "arguments": {"plan": arguments.plan}},
    )
    decided = await context.agent.ask(approval, cancel=context.cancel)
    if decided.outcome != "approved":
        raise ToolError(_refusal(decided))
    leave(session, arguments.plan)
    remark = f" The person remarked: {decided.answer}" if decided.answer else ""
    return f"The plan is approved and plan mode is off: carry the plan out.{remark}"


def _refusal(decided: AskDecided) -> str:
    if decided.answer:
        return f"The plan is not approved. The person said: {decided.answer}"
    why = decided.reason or "the person declined"
    return f"The plan is not approved ({why}); plan mode stays on."


LEAVE_PLAN = Tool(
    name="leave_plan",
    description=(
        "In plan mode: show the person your whole plan and ask for approval. If it is approved, "
        "plan mode ends and you carry the plan out; otherwise go on planning."
    ),
    arguments=LeaveArguments,
    run=_leave,
    changes=False,
    timeout=math.inf,  # an ask has a deadline of its own
)
