"""The hooks that skills own."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from heald import collect, provide
from heald_skills.contracts import SkillRoot, Skills


@provide
def skills() -> Skills:
    """Find the skills of the sessions on a composition."""
    ...


@collect(key=attrgetter("name"))
def skill_roots() -> Iterable[SkillRoot]:
    """Contribute directories of skills that a package ships."""
    ...
