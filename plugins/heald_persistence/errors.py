"""Errors of storage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import attrs

from heald import HealdError, as_word


@attrs.define
class SessionBusy(HealdError):
    """Another handle, here or in another process, may write the session."""

    code = "SESSION_BUSY"
    id: str
    owner: str
    """Who holds it, for people: process, host and since when."""

    def message(self) -> str:
        return (
            f"session {self.id!r} is being written by {self.owner}; end that, or fork the session"
        )


@attrs.define
class LogChanged(HealdError):
    """The log is not what its writer left or its reader opened: somebody changed it."""

    code = "LOG_CHANGED"
    id: str
    reason: str

    def message(self) -> str:
        return (
            f"the log of {self.id!r} was changed by someone else ({self.reason}); "
            "read or resume it again"
        )


@attrs.define
class SessionDamaged(HealdError):
    """Acknowledged data of a log cannot be read."""

    code = "SESSION_DAMAGED"
    id: str
    reason: str

    def message(self) -> str:
        return (
            f"session {self.id!r} is damaged: {self.reason}; what is left can be read, and "
            f"`heald sessions salvage {as_word(self.id)}` makes it writable again"
        )


@attrs.define
class HeaderDamaged(SessionDamaged):
    """The header of a session cannot be read, and nothing of its log without it."""

    def message(self) -> str:
        return (
            f"session {self.id!r} is damaged: {self.reason}; nothing of it can be read without "
            "that file: put it back from a copy, or move what there is to the trash with "
            f"`heald sessions delete {as_word(self.id)}`"
        )


@attrs.define
class SessionNotSaved(HealdError):
    """What was appended cannot be made durable at present; nothing is lost while the host lives."""

    code = "SESSION_NOT_SAVED"
    id: str
    reason: str

    def message(self) -> str:
        return f"session {self.id!r} is not being saved: {self.reason}; free space or mend the disk"


@attrs.define
class FormatTooNew(HealdError):
    """A newer Heald wrote the log."""

    code = "FORMAT_TOO_NEW"
    id: str
    version: int
    part: str | None = None
    """What of the format this Heald cannot read, if the version alone does not say it."""

    def message(self) -> str:
        what = self.part or f"format {self.version}"
        return f"session {self.id!r} has {what}; it needs a newer Heald"


@attrs.define
class StorageUnavailable(HealdError):
    """The place where sessions are kept cannot be used."""

    code = "STORAGE_UNAVAILABLE"
    path: str
    reason: str

    def message(self) -> str:
        return f"cannot use {self.path}: {self.reason}; mend it, or set HEALD_HOME to another place"


@contextlib.contextmanager
def usable(path: Path) -> Iterator[None]:
    """Make a `StorageUnavailable` of what the system refuses inside the block."""
    try:
        yield
    except OSError as error:
        raise StorageUnavailable(str(path), str(error.strerror)) from error


@attrs.define
class PlatformUnsupported(HealdError):
    """Logs cannot be kept safely on this platform."""

    code = "PLATFORM_UNSUPPORTED"
    platform: str

    def message(self) -> str:
        return (
            f"sessions cannot be kept on {self.platform}: it lacks the file locks that keep two "
            "writers apart; disable the row `persistence` to run with sessions in memory only"
        )
