"""Moving sessions: exports to one file, and imports of those and of reference logs."""

from heald_transfer.errors import (
    EventTooLarge,
    ExportExists,
    ExportUnwritable,
    FileUnreadable,
    NothingToImport,
)

__all__ = [
    "EventTooLarge",
    "ExportExists",
    "ExportUnwritable",
    "FileUnreadable",
    "NothingToImport",
]
