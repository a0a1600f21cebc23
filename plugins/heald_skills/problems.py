"""Why a skill cannot be used."""

from __future__ import annotations


class SkillProblem(Exception):
    """A skill is broken; its text is the one reason that people see."""
