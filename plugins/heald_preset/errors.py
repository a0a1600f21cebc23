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
class PresetLocked(HealdError):
    """A session that is not blank, or that is a subagent, was to change its preset."""

    code = "PRESET_LOCKED"
    session: str
    running: str
    asked: str

    def message(self) -> str:
        return (
            f"session {self.session!r} stays on preset {self.running!r}: only a session that "
            f"no turn has begun in can change it, and no subagent; "
            f"start a new one with `heald sessions new --preset {self.asked}`"
        )


@attrs.define
class PresetGone(HealdError, LookupError):
    """A session that is to be resumed ran on a preset that is there no more."""

    code = "PRESET_GONE"
    session: str
    preset: str
    known: tuple[str, ...]

    def message(self) -> str:
        return (
            f"session {self.session!r} ran on preset {self.preset!r}, which is not there any more; "
            f'go on with another one: `heald run --session {self.session} --continue-as ID "..."` '
            f"(there are: {', '.join(self.known)})"
        )


@attrs.define
class PresetExists(HealdError, FileExistsError):
    """A preset cannot be made where one of its id is."""

    code = "PRESET_EXISTS"
    id: str
    root: str
    path: Path

    def message(self) -> str:
        return f"there is a preset {self.id!r} ({self.root}, {self.path}); choose another id"


@attrs.define
class PresetReadOnly(HealdError, PermissionError):
    """A preset is not the person's own, so it cannot be removed here."""

    code = "PRESET_READ_ONLY"
    id: str
    root: str
    path: Path

    def message(self) -> str:
        return (
            f"preset {self.id!r} is not one of yours ({self.root}, {self.path}); "
            f"to have another, make one that extends it: `heald presets new ID --extends {self.id}`"
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
