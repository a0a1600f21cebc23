"""Errors of plan mode."""

from __future__ import annotations

import attrs

from heald import HealdError


@attrs.define
class PlanArgumentInvalid(HealdError, ValueError):
    """`/plan` was given something it does not know."""

    code = "PLAN_ARGUMENT_INVALID"
    argument: str

    def message(self) -> str:
        return f"/plan does not know {self.argument!r}; write /plan, /plan on or /plan off"
