"""Skills: directories with a SKILL.md that tell an agent how a kind of work is done."""

from heald_skills.contracts import Skill, SkillRoot, Skills
from heald_skills.errors import SkillRootUnreadable, SkillUnusable
from heald_skills.hookspecs import skill_roots, skills

__all__ = [
    "Skill",
    "SkillRoot",
    "SkillRootUnreadable",
    "SkillUnusable",
    "Skills",
    "skill_roots",
    "skills",
]
