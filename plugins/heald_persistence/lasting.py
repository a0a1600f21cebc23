"""Whether what follows from logs may be kept in files."""

from __future__ import annotations

from heald import Scope
from heald_persistence.contracts import SessionPersistence
from heald_persistence.hookspecs import session_persistence


def lasting_persistence(scope: Scope) -> SessionPersistence | None:
    """Return the storage if its logs outlive the process.

    What is derived from other logs goes with them: it is written to no file, and what is in the
    files is of logs that are not to be seen from here.
    """
    storage = scope.find(session_persistence)
    return storage if storage is not None and storage.outlives_process else None
