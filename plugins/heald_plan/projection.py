"""The projection `plan`: whether plan mode is on, and the plan that was approved last."""

from __future__ import annotations

from typing import NotRequired, TypedDict

import msgspec

from heald_plan.events import PLAN_ENTERED, PLAN_LEFT, PlanLeft
from heald_projection import Unit
from heald_session import Event, Header, LogOffset

KEY = "plan"


class Plan(TypedDict):
    """State and view; absent is a plan that no one approved yet, or that a new one replaces."""

    active: bool
    plan: NotRequired[str]


def _initial(_header: Header, _cut: LogOffset) -> Plan:
    return {"active": False}


def _apply(state: Plan, event: Event) -> Plan:
    if event.type == PLAN_ENTERED.name:
        after: Plan = {"active": True}
    else:
        plan = _approved(event)
        after = {"active": False} if plan is None else {"active": False, "plan": plan}
    return state if after == state else after


def _approved(event: Event) -> str | None:
    try:
        return event.data_as(PlanLeft).plan
    except msgspec.ValidationError:  # written under another schema: it was left all the same
        return None


def _view(state: Plan) -> Plan:
    return state


PLAN = Unit(
    key=KEY,
    state_version=1,
    event_types=frozenset({PLAN_ENTERED.name, PLAN_LEFT.name}),
    initial=_initial,
    apply=_apply,
    view=_view,
    state_schema=Plan,
    view_schema=Plan,
)
