"""Storage: what keeps session logs, leases them to one writer, and reads them back."""

from heald_persistence.contracts import (
    Damage,
    LogWriter,
    SessionPersistence,
    StoredLog,
    StoredSession,
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
from heald_persistence.hookspecs import session_persistence

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
    "session_persistence",
]
