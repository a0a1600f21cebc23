"""Errors of moving sessions."""

from __future__ import annotations

import attrs

from heald import HealdError


@attrs.define
class EventTooLarge(HealdError):
    """An event is larger than any reader of exports would take."""

    code = "EVENT_TOO_LARGE"
    id: str
    seq: int
    size: int

    def message(self) -> str:
        return (
            f"event {self.seq} of {self.id!r} has {self.size} bytes, more than an export can hold; "
            "copy the session's directory instead"
        )


@attrs.define
class ExportExists(HealdError):
    """The file an export was to be written to is there already."""

    code = "EXPORT_EXISTS"
    path: str

    def message(self) -> str:
        return f"{self.path} exists; choose another name, or say --force to replace it"


@attrs.define
class ExportUnwritable(HealdError):
    """An export cannot be written where it was to be."""

    code = "EXPORT_UNWRITABLE"
    path: str
    reason: str

    def message(self) -> str:
        return f"cannot write {self.path}: {self.reason}; choose another place"


@attrs.define
class FileUnreadable(HealdError):
    """A file is no export and no session log of the reference system, or is broken."""

    code = "FILE_UNREADABLE"
    path: str
    reason: str

    def message(self) -> str:
        return f"{self.path}: {self.reason}; nothing was imported from there on"


@attrs.define
class NothingToImport(HealdError):
    """A place has no file that could be imported."""

    code = "NOTHING_TO_IMPORT"
    path: str

    def message(self) -> str:
        return (
            f"{self.path} has nothing to import; name a file that `heald sessions export` made, or "
            "a directory with files that end in .heald.zst or .jsonl.zstd"
        )
