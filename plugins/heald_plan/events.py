"""The events of plan mode."""

from __future__ import annotations

import msgspec

from heald_session import EventType


class PlanEntered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`plan/entered`: from here on nothing is to be changed."""


class PlanLeft(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`plan/left`: from here on things may be changed again."""

    plan: str | None = None
    """The plan that was approved; absent when a person just turned plan mode off."""


PLAN_ENTERED = EventType("plan/entered", PlanEntered)
PLAN_LEFT = EventType("plan/left", PlanLeft)
