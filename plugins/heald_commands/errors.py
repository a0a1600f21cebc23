"""Errors of slash commands."""

from __future__ import annotations

import attrs

from heald import HealdError, did_you_mean


@attrs.define
class CommandUnknown(HealdError, LookupError):
    """The session's composition has no such command."""

    code = "COMMAND_UNKNOWN"
    name: str
    known: tuple[str, ...]

    def message(self) -> str:
        return f"no command /{self.name}; {did_you_mean(self.name, self.known)}"


@attrs.define
class CommandFailed(HealdError):
    """A command's body raised."""

    code = "COMMAND_FAILED"
    name: str
    reason: str

    def message(self) -> str:
        return f"/{self.name} failed: {self.reason}"
