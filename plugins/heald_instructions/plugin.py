"""The plugin that gives agents the instructions that people left for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from heald import Plugin, implements
from heald_agent import PromptSection, prompt_sections
from heald_instructions.events import INSTRUCTIONS_READ
from heald_instructions.projection import INSTRUCTION_FILES
from heald_instructions.section import InstructionSection
from heald_projection import Unit, projections, units
from heald_session import EventType, event_types


def _positive(_: Any, field: attrs.Attribute[Any], value: int) -> None:
    if value <= 0:
        raise ValueError(f"{field.name} must be more than 0")


def _file_names(_: Any, field: attrs.Attribute[Any], value: list[str]) -> None:
    for name in value:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise ValueError(f"{field.name} must be names of files, without a directory")


@attrs.frozen
class InstructionsConfig:
    """Which files are read, and how far."""

    files: list[str] = attrs.field(
        factory=lambda: ["AGENTS.md", "CLAUDE.md"], validator=_file_names
    )
    """Names, looked for in the session's directory and those above it."""
    max_file_bytes: int = attrs.field(default=64 * 1024, validator=_positive)
    """How much of one file is read."""
    max_bytes: int = attrs.field(default=128 * 1024, validator=_positive)
    """How much is read of all of them, the nearest first."""


class InstructionsPlugin(Plugin[InstructionsConfig]):
    """Reads AGENTS.md and CLAUDE.md at the start of each turn."""

    requires = (projections,)

    @implements(prompt_sections)
    def instructions(self) -> Iterable[PromptSection]:
        section = InstructionSection(
            names=tuple(self.config.files),
            most_of_one=self.config.max_file_bytes,
            most=self.config.max_bytes,
        )
        return (PromptSection("instructions", section.render),)

    @classmethod
    @implements(event_types)
    def declare_events(cls) -> Iterable[EventType]:
        return (INSTRUCTIONS_READ,)

    @classmethod
    @implements(units)
    def declare_units(cls) -> Iterable[Unit]:
        return (INSTRUCTION_FILES,)
