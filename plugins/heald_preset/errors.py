"""Errors of presets."""

from __future__ import annotations

from pathlib import Path

import attrs

from heald import FailedRow, HealdError, did_you_mean


@attrs.define
class PresetNotFound(HealdError, LookupError):
    """No root has a preset of this id."""

    code = "PRESET_NOT_FOUND"
    id: str
    known: tuple[str, ...]

    def message(self) -> str:
        hint, names = did_you_mean(self.id, self.known), ", ".join(self.known)
        rest = "" if names in hint else f" (there are: {names})"
        return f"no preset {self.id!r}; {hint}{rest}"


@attrs.define
class PresetInvalid(HealdError):
    """A preset cannot be mounted; nothing of it runs."""

    code = "PRESET_INVALID"
    id: str
    reason: str
    failed: tuple[FailedRow, ...] = ()

    def message(self) -> str:
        return "\n".join([f"preset {self.id!r}: {self.reason}", *(f"  {f}" for f in self.failed)])


@attrs.define
class PresetConflict(HealdError):
    """A session that runs on one preset was asked for with another."""

    code = "PRESET_CONFLICT"
    session: str
    running: str
    asked: str

    def message(self) -> str:
        return (
            f"session {self.session!r} runs on preset {self.running!r}, not {self.asked!r}; "
            f"leave out the preset, or start a new session"
        )


@attrs.define
class PresetRootUnreadable(HealdError, OSError):
    """A directory of presets is there and cannot be read."""

    code = "PRESET_ROOT_UNREADABLE"
    root: str
    path: Path
    reason: str

    def message(self) -> str:
        return f"{self.root} presets in {self.path} cannot be read: {self.reason}; mend that first"
