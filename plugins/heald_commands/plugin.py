"""The plugin that runs slash commands."""

from __future__ import annotations

from collections.abc import Iterable

from heald import NoConfig, Plugin, implements
from heald_commands.contracts import CommandDirectory
from heald_commands.directory import Directory
from heald_commands.events import COMMAND_RAN
from heald_commands.hookspecs import command_directory
from heald_session import EventType, event_types


class CommandsPlugin(Plugin[NoConfig]):
    """Lets people have things done in a session without a model turn."""

    @implements(command_directory)
    def directory(self) -> CommandDirectory:
        return Directory()

    @classmethod
    @implements(event_types)
    def declare_events(cls) -> Iterable[EventType]:
        return (COMMAND_RAN,)
