"""The plugin that brings skills from the file system."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

import attrs

from heald import Plugin, RowContext, implements
from heald_agent import AnyTool, PromptSection, prompt_sections, tools
from heald_commands import CommandSource, command_sources
from heald_skills.contracts import Skills
from heald_skills.hookspecs import skills
from heald_skills.invocation import SkillCommands
from heald_skills.library import Library
from heald_skills.listing import Listing
from heald_skills.tool import skill_tool
from heald_skills.watching import Watch


def _not_negative(_: Any, field: attrs.Attribute[Any], value: int) -> None:
    if value < 0:
        raise ValueError(f"{field.name} must not be negative")


def _inside(_: Any, field: attrs.Attribute[Any], value: list[str]) -> None:
    for folder in map(PurePosixPath, value):
        if folder.is_absolute() or ".." in folder.parts or not folder.parts:
            raise ValueError(f"{field.name} must name directories in the project")


@attrs.frozen
class SkillsConfig:
    """Where a project keeps its skills, and how many of all are listed."""

    project: list[str] = attrs.field(factory=lambda: [".heald/skills"], validator=_inside)
    """Directories of skills, relative to the one that a session works in."""
    listed: int = attrs.field(default=100, validator=_not_negative)
    """How many skills the prompt names at most."""


class SkillsPlugin(Plugin[SkillsConfig]):
    """Lets agents and people use the skills of presets, projects, the person and packages."""

    def __init__(self, context: RowContext[SkillsConfig]) -> None:
        super().__init__(context)
        self._library = Library(self.scope, tuple(self.config.project))
        self._watch = Watch(self.logger)
        self._listing = Listing(self._library, self._watch, self.config.listed, self.logger)

    async def start(self) -> None:
        group = await self.stack.enter_async_context(asyncio.TaskGroup())
        watching = group.create_task(self._watch.run(), name=f"watching skills of {self.row}")
        self.stack.callback(watching.cancel)

    @implements(skills)
    def keep(self) -> Skills:
        return self._library

    @implements(tools)
    def read_one(self) -> Iterable[AnyTool]:
        return (skill_tool(self._library),)

    @implements(prompt_sections)
    def list_them(self) -> Iterable[PromptSection]:
        return (PromptSection("skills", self._listing.section),)

    @implements(command_sources)
    def run_them(self) -> Iterable[CommandSource]:
        return (SkillCommands(self._library),)
