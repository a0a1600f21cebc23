"""A look at the skills there are, as far as the prompt has room for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from heald_skills.contracts import SkillRoot
from heald_skills.errors import SkillRootUnreadable
from heald_skills.roots import entries, names
from heald_skills.skill_file import FILE
from heald_skills.watching import Wanted

_MOST_TEXT = 32 * 1024
"""Characters of the list."""
_MOST_LOOKED_AT = 1_000
"""Skills that are read for one list, broken and hidden ones too."""


@attrs.frozen
class Look:
    """What was seen: a line for each skill that is offered, and what tells when to look again."""

    lines: Sequence[str]
    unseen: int
    """How many more names there are that could be skills."""
    unreadable: Sequence[SkillRootUnreadable]
    wanted: Wanted


def look(roots: Sequence[SkillRoot], most: int) -> Look:
    """Look at skills until there is no room for another; it blocks."""
    named, unreadable = _named(roots)
    looked: list[Path] = []
    lines: list[str] = []
    size = unseen = 0
    for skill in entries(named):
        line = f"- {skill.name}: {skill.description}"
        size += len(line) if skill.offered else 0
        full = skill.offered and (len(lines) == most or size > _MOST_TEXT)
        if full or len(looked) == _MOST_LOOKED_AT:
            unseen = sum(len(names_) for _, names_ in named) - len(looked)
            break
        looked.append(skill.directory / FILE)
        if skill.offered:
            lines.append(line)
    return Look(lines, unseen, unreadable, Wanted.of([root.path for root in roots], looked))


def _named(
    roots: Sequence[SkillRoot],
) -> tuple[list[tuple[SkillRoot, Sequence[str]]], list[SkillRootUnreadable]]:
    """Return the names in each root, and what is wrong with those that cannot be read."""
    named: list[tuple[SkillRoot, Sequence[str]]] = []
    unreadable: list[SkillRootUnreadable] = []
    for root in roots:
        try:
            named.append((root, names(root)))
        except SkillRootUnreadable as error:
            unreadable.append(error)
    return named, unreadable
