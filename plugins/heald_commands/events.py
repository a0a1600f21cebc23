"""The event that records a command."""

from __future__ import annotations

import msgspec

from heald_session import EventType


class CommandRan(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`command/ran`: a person had a command run; the model sees nothing of it."""

    name: str
    arguments: str
    output: str
    """What the person read; the reason when it is an error."""
    is_error: bool = False


COMMAND_RAN = EventType("command/ran", CommandRan)
