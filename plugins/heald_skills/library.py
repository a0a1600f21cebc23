"""The skills of the sessions on one composition, wherever they work."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import attrs

from heald import Scope
from heald_skills.contracts import Skill, SkillRoot
from heald_skills.errors import SkillUnusable
from heald_skills.problems import SkillProblem
from heald_skills.roots import entries, names, roots
from heald_skills.skill_file import is_name, read_body, read_skill


@attrs.frozen
class Library:
    """Looks into the files for each question, in a thread; implements `Skills`."""

    scope: Scope
    project: tuple[str, ...]
    """Directories of skills in a session's directory."""

    async def catalogue(self, cwd: Path | None) -> Sequence[Skill]:
        return await asyncio.to_thread(_all, self.roots(cwd))

    async def find(self, name: str, cwd: Path | None) -> Skill | None:
        if not is_name(name):
            return None
        return await asyncio.to_thread(_first, self.roots(cwd), name)

    async def body(self, skill: Skill) -> str:
        if skill.problem is not None:
            raise SkillUnusable(skill.name, skill.directory, skill.problem)
        try:
            return await asyncio.to_thread(read_body, skill.directory)
        except SkillProblem as error:
            raise SkillUnusable(skill.name, skill.directory, str(error)) from error

    async def text(self, skill: Skill) -> str:
        """Return what the model reads of a skill that is used."""
        head = f"Skill {skill.name}, in {skill.directory}; its files are named relative to there."
        return f"{head}\n\n{await self.body(skill)}"

    def roots(self, cwd: Path | None) -> tuple[SkillRoot, ...]:
        """Return where the skills of sessions in a directory are looked for."""
        return roots(self.scope, cwd, self.project)


def _all(roots: Sequence[SkillRoot]) -> list[Skill]:
    return list(entries((root, names(root)) for root in roots))


def _first(roots: Sequence[SkillRoot], name: str) -> Skill | None:
    found = (read_skill(root, name) for root in roots)
    return next((skill for skill in found if skill is not None), None)
