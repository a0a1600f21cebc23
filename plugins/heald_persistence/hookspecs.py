"""The hooks that storage owns."""

from __future__ import annotations

from heald import provide
from heald_persistence.contracts import SessionPersistence


@provide
def session_persistence() -> SessionPersistence:
    """Keep session logs where they outlive the process."""
    ...
