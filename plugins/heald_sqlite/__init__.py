"""Files of derived data in SQLite, guarded and disposable; a library of plugins, not one itself."""

from heald_sqlite.derived import DerivedDatabase
from heald_sqlite.errors import ResetFailed
from heald_sqlite.schema import Schema

__all__ = ["DerivedDatabase", "ResetFailed", "Schema"]
