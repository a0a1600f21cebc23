"""Storage: what keeps session logs, leases them to one writer, and reads them back."""

from heald_persistence.contracts import (
    Damage,
    LogWriter,
    SessionPersistence,
    StoredLog,
    StoredSession,
    Survey,
    last_before,
)
from heald_persistence.errors import (
    FormatTooNew,
    LogChanged,
    PlatformUnsupported,
    SessionBusy,
    SessionDamaged,
    SessionNotSaved,
    StorageUnavailable,
)
from heald_persistence.hookspecs import session_deleted, session_persistence
from heald_persistence.lasting import lasting_persistence

__all__ = [
    "Damage",
    "FormatTooNew",
    "LogChanged",
    "LogWriter",
    "PlatformUnsupported",
    "SessionBusy",
    "SessionDamaged",
    "SessionNotSaved",
    "SessionPersistence",
    "StorageUnavailable",
    "StoredLog",
    "StoredSession",
    "Survey",
    "last_before",
    "lasting_persistence",
    "session_deleted",
    "session_persistence",
]
