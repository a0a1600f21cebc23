"""What skills are to everyone else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs


@attrs.frozen
class SkillRoot:
    """A directory of skills: each is a directory `<name>` with a `SKILL.md`."""

    name: str
    """What people see as the origin: a preset, project, user, or the package that brought it."""
    path: Path


@attrs.frozen
class Skill:
    """One skill of a root; a broken one stays listed with its problem."""

    name: str
    """The name of its directory, which no other skill of the root can have."""
    root: str
    directory: Path
    description: str = ""
    extra: Mapping[str, Any] = attrs.field(factory=dict)
    """What else its front matter says, as JSON values."""
    problem: str | None = None
    hidden: bool = False
    """Whether a skill of the same name in an earlier root hides this one."""

    @property
    def offered(self) -> bool:
        """Whether an agent has it."""
        return self.problem is None and not self.hidden


class Skills(Protocol):
    """The skills of the sessions on a composition, read from their files each time."""

    async def catalogue(self, cwd: Path | None) -> Sequence[Skill]:
        """List every skill that a session in `cwd` meets, broken and hidden ones too, by root.

        Raises `SkillRootUnreadable`.
        """
        ...

    async def find(self, name: str, cwd: Path | None) -> Skill | None:
        """Return the skill of a name, which may be broken."""
        ...

    async def body(self, skill: Skill) -> str:
        """Read what a skill says below its front matter; raises `SkillUnusable`."""
        ...
