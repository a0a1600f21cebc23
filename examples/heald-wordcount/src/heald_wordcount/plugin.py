"""The plugins of this package: classes that say what they contribute, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from heald import NoConfig, Plugin, implements
from heald_agent import AnyTool, tools
from heald_commands import Command, commands
from heald_preset import PresetRoot, preset_roots
from heald_projection import Unit, units
from heald_session import EventType, event_types
from heald_wordcount.command import WORDS
from heald_wordcount.counts import EVENT_TYPE, UNIT
from heald_wordcount.tool import count_words_tool


def _positive(_: object, _field: Any, value: int) -> None:
    if value < 1:
        raise ValueError("it must be at least 1")


@attrs.frozen
class WordCountConfig:
    """What a row may say under `config`; anything else is refused, naming what was meant."""

    shortest: int = attrs.field(default=1, validator=_positive)
    """How many characters a word has at least."""


class WordCountPlugin(Plugin[WordCountConfig]):
    """Gives an agent the tool `count_words` and its session the command `/words`."""

    @implements(tools)
    def word_tools(self) -> Iterable[AnyTool]:
        """Make the tool as the row configures it."""
        return [count_words_tool(self.config.shortest)]

    @implements(commands)
    def word_commands(self) -> Iterable[Command]:
        """Give the command."""
        return [WORDS]

    # Vocabulary is declared by the class: what an event means does not depend on rows, so a log
    # reads the same whether or not a row of this plugin is mounted.

    @classmethod
    @implements(event_types)
    def word_event_types(cls) -> Iterable[EventType]:
        """Declare the event that the tool appends."""
        return [EVENT_TYPE]

    @classmethod
    @implements(units)
    def word_units(cls) -> Iterable[Unit]:
        """Declare the projection that adds the events up."""
        return [UNIT]


class WordCountPresetsPlugin(Plugin[NoConfig]):
    """Adds this package's presets to the roster; a row for the host, see `bundle.toml`."""

    @implements(preset_roots)
    def word_presets(self) -> Iterable[PresetRoot]:
        """Name the directory that holds them."""
        return [PresetRoot("heald-wordcount", Path(__file__).parent / "presets")]
