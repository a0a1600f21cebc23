"""What the model is told of the skills there are."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from heald_agent import Agent
from heald_skills.contracts import Skill, SkillRoot
from heald_skills.errors import SkillRootUnreadable
from heald_skills.library import Library
from heald_skills.roots import entries, names
from heald_skills.skill_file import FILE
from heald_skills.tool import NAME
from heald_skills.watching import Watch

_INTRODUCTION = (
    "Skills tell how particular kinds of work are done. Before work that one of them is for, call "
    f"`{NAME}` with its name, and do as it says."
)
_MOST_TEXT = 32 * 1024
"""Characters of the list."""
_MOST_LOOKED_AT = 1_000
"""Skills that are read for one list, broken and hidden ones too."""
_MOST_KEPT = 64
"""Working directories whose list is kept."""


@attrs.frozen
class Listed:
    """A list, and what was known to be unchanged when it was begun."""

    mark: object | None
    text: str


class Listing:
    """Makes the prompt section, from files only if something may have changed since."""

    def __init__(self, library: Library, watch: Watch, most: int, logger: logging.Logger) -> None:
        self._library = library
        self._watch = watch
        self._most = most
        self._logger = logger
        self._told: set[Path] = set()
        self._kept: OrderedDict[Path | None, Listed] = OrderedDict()

    def section(self, agent: Agent) -> str:
        """Return the section for an agent; empty if it has no skills."""
        if NAME in agent.denied_tools:
            return ""
        cwd = Path(agent.session.header.cwd) if agent.session.header.cwd else None
        kept = self._kept.get(cwd)
        if kept is not None and kept.mark is not None and kept.mark is self._watch.mark:
            return kept.text
        return self._made(cwd)

    def _made(self, cwd: Path | None) -> str:
        mark = self._watch.mark
        roots = self._library.roots(cwd)
        named = [(root, self._names(root)) for root in roots]
        looked, lines, whole = self._look(named)
        if not whole:
            rest = sum(len(names) for _, names in named) - len(looked)
            lines.append(f"[not listed: up to {rest:,} more, which can be called by name]")
        text = "\n".join((_INTRODUCTION, "", *lines)) if lines else ""
        self._watch.want(cwd, [r.path for r in roots], [s.directory / FILE for s in looked])
        self._keep(cwd, Listed(mark, text))
        return text

    def _names(self, root: SkillRoot) -> list[str]:
        """Return the names in a root; of one that cannot be read the log is told, once."""
        try:
            return names(root)
        except SkillRootUnreadable as error:
            if root.path not in self._told:
                self._told.add(root.path)
                self._logger.warning("%s", error)
            return []

    def _look(
        self, named: Iterable[tuple[SkillRoot, Sequence[str]]]
    ) -> tuple[list[Skill], list[str], bool]:
        """Look at skills until there is no room for another.

        Returns those, the lines, and whether that was all.
        """
        looked: list[Skill] = []
        lines: list[str] = []
        size = 0
        for skill in entries(named):
            line = f"- {skill.name}: {skill.description}"
            size += len(line) if skill.offered else 0
            full = skill.offered and (len(lines) == self._most or size > _MOST_TEXT)
            if full or len(looked) == _MOST_LOOKED_AT:
                return looked, lines, False
            looked.append(skill)
            if skill.offered:
                lines.append(line)
        return looked, lines, True

    def _keep(self, cwd: Path | None, listed: Listed) -> None:
        self._kept[cwd] = listed
        self._kept.move_to_end(cwd)
        if len(self._kept) > _MOST_KEPT:
            self._watch.forget(self._kept.popitem(last=False)[0])
