"""Slash commands: what a person can have done in a session without a model turn."""

from heald_commands.contracts import Command, CommandCall, CommandDirectory
from heald_commands.errors import CommandFailed, CommandUnknown
from heald_commands.events import CommandRan
from heald_commands.hookspecs import command_directory, commands

__all__ = [
    "Command",
    "CommandCall",
    "CommandDirectory",
    "CommandFailed",
    "CommandRan",
    "CommandUnknown",
    "command_directory",
    "commands",
]
