"""Plan mode: an agent looks and plans, and changes nothing until a person approves its plan."""

from heald_plan.events import PlanEntered, PlanLeft

__all__ = ["PlanEntered", "PlanLeft"]
