"""Errors of skills."""

from __future__ import annotations

from pathlib import Path

import attrs

from heald import HealdError


@attrs.define
class SkillUnusable(HealdError):
    """A skill is there and cannot be used."""

    code = "SKILL_UNUSABLE"
    name: str
    directory: Path
    reason: str

    def message(self) -> str:
        return f"skill {self.name!r} in {self.directory}: {self.reason}; mend its SKILL.md"


@attrs.define
class SkillRootUnreadable(HealdError, OSError):
    """A directory of skills is there and cannot be read."""

    code = "SKILL_ROOT_UNREADABLE"
    root: str
    path: Path
    reason: str

    def message(self) -> str:
        return f"{self.root} skills in {self.path} cannot be read: {self.reason}; mend that first"
