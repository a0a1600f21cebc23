"""What the model is told of the skills there are."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

import attrs

from heald_agent import Agent
from heald_skills.errors import SkillRootUnreadable
from heald_skills.library import Library
from heald_skills.looking import Look, look
from heald_skills.tool import NAME
from heald_skills.watching import Watch

_INTRODUCTION = (
    "Skills tell how particular kinds of work are done. Before work that one of them is for, call "
    f"`{NAME}` with its name, and do as it says."
)
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

    async def section(self, agent: Agent) -> str:
        """Return the section for an agent; empty if it has no skills."""
        if NAME in agent.denied_tools:
            return ""
        cwd = Path(agent.session.header.cwd) if agent.session.header.cwd else None
        kept = self._kept.get(cwd)
        if kept is not None and kept.mark is not None and kept.mark is self._watch.mark:
            return kept.text
        return await self._made(cwd)

    async def _made(self, cwd: Path | None) -> str:
        with self._watch.looking() as mark:
            seen = await asyncio.to_thread(look, self._library.roots(cwd), self._most)
            self._watch.want(cwd, seen.wanted)
        self._tell(seen.unreadable)
        text = _text(seen)
        self._keep(cwd, Listed(mark, text))
        return text

    def _tell(self, unreadable: Iterable[SkillRootUnreadable]) -> None:
        """Tell the log of roots that cannot be read, once of each."""
        for error in unreadable:
            if error.path not in self._told:
                self._told.add(error.path)
                self._logger.warning("%s", error)

    def _keep(self, cwd: Path | None, listed: Listed) -> None:
        self._kept[cwd] = listed
        self._kept.move_to_end(cwd)
        if len(self._kept) > _MOST_KEPT:
            self._watch.forget(self._kept.popitem(last=False)[0])


def _text(seen: Look) -> str:
    lines = list(seen.lines)
    if seen.unseen:
        lines.append(f"[not listed: up to {seen.unseen:,} more, which can be called by name]")
    return "\n".join((_INTRODUCTION, "", *lines)) if lines else ""
