"""The directories that skills are looked for in, in the order in which the first one wins."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from heald import Scope
from heald_skills.contracts import Skill, SkillRoot
from heald_skills.errors import SkillRootUnreadable
from heald_skills.hookspecs import skill_roots
from heald_skills.skill_file import read_skill


def roots(scope: Scope, cwd: Path | None, project: Iterable[str]) -> tuple[SkillRoot, ...]:
    """Return the roots of sessions in a directory: the presets', the project's, yours, packages'.

    A preset's come before those of what it extends.
    """
    presets = (SkillRoot(f"preset {d.name}", d / "skills") for d in scope.composition.directories)
    own = () if cwd is None else (SkillRoot("project", cwd / folder) for folder in project)
    packaged = (contribution.value for contribution in scope.collect(skill_roots))
    return (*presets, *own, SkillRoot("user", scope.host.home / "skills"), *packaged)


def entries(named: Iterable[tuple[SkillRoot, Iterable[str]]]) -> Iterator[Skill]:
    """Yield the skills of roots by name, reading no further than it is asked to."""
    seen: set[str] = set()
    for root, names_ in named:
        for name in names_:
            if (skill := read_skill(root, name)) is not None:
                yield attrs.evolve(skill, hidden=name in seen)
                seen.add(name)


def names(root: SkillRoot) -> list[str]:
    """Return the names in a root that could be skills: not files, and not hidden.

    Raises `SkillRootUnreadable`.
    """
    try:
        with os.scandir(root.path) as found:
            return sorted(
                entry.name
                for entry in found
                if not entry.name.startswith(".") and not entry.is_file(follow_symlinks=False)
            )
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SkillRootUnreadable(root.name, root.path, error.strerror or str(error)) from error
