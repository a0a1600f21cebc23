"""Slash commands: what a person can have done in a session without a model turn."""

from heald_commands.contracts import Command, CommandCall, CommandDirectory, CommandSource
from heald_commands.errors import CommandFailed, CommandUnknown
from heald_commands.events import CommandRan
from heald_commands.hookspecs import command_directory, command_sources, commands
from heald_commands.places import Place, place_of

__all__ = [
    "Command",
    "CommandCall",
    "CommandDirectory",
    "CommandFailed",
    "CommandRan",
    "CommandSource",
    "CommandUnknown",
    "Place",
    "command_directory",
    "command_sources",
    "commands",
    "place_of",
]
