"""The plugin of compaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from heald import Plugin, implements, setting
from heald_agent import agents
from heald_commands import Command, commands
from heald_compaction.command import compact_command
from heald_compaction.events import COMPACTION_FAILED, COMPACTION_STARTED
from heald_compaction.summary import PROMPT
from heald_session import EventType, event_types


def _not_negative(_: object, _field: Any, value: int) -> None:
    if value < 0:
        raise ValueError("it must be 0 or more")


def _said(_: object, _field: Any, value: str) -> None:
    if not value.strip():
        raise ValueError("it must say what is asked for")


@attrs.frozen
class CompactionConfig:
    """How a session is compacted."""

    keep_chars: int = setting(default=16_000, validator=_not_negative)
    """Up to how many characters the newest messages have that stay as they are."""
    prompt: str = setting(default=PROMPT, validator=_said)
    """What the model is asked for, after the messages that its answer replaces."""


class CompactionPlugin(Plugin[CompactionConfig]):
    """Lets a person replace what was said by a summary of it, for the model."""

    requires = (agents,)

    @implements(commands)
    def command(self) -> Iterable[Command]:
        return (compact_command(self.config.prompt, self.config.keep_chars),)

    @classmethod
    @implements(event_types)
    def declare_events(cls) -> Iterable[EventType]:
        return (COMPACTION_STARTED, COMPACTION_FAILED)
