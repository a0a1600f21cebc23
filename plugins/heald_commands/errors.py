"""Errors of slash commands."""

from __future__ import annotations

import attrs

from heald import HealdError, did_you_mean

_LONGEST_HINT = 2_000
"""Characters that the names of all commands may take where none was meant."""


@attrs.define
class CommandUnknown(HealdError, LookupError):
    """The session's composition has no such command."""

    code = "COMMAND_UNKNOWN"
    name: str
    known: tuple[str, ...]

    def message(self) -> str:
        if self.known:
            hint = did_you_mean(self.name, self.known)
            if len(hint) > _LONGEST_HINT:
                hint = f"`heald commands` lists the {len(self.known):,} there are"
            return f"no command /{self.name}; {hint}"
        return (
            f"no command /{self.name}: the session's preset has no commands; "
            f"choose another preset, or add the row of a plugin that contributes some"
        )


@attrs.define
class CommandFailed(HealdError):
    """A command's body raised."""

    code = "COMMAND_FAILED"
    name: str
    reason: str

    def message(self) -> str:
        return f"/{self.name} failed: {self.reason}"
