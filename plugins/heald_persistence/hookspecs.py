"""The hooks that storage owns."""

from __future__ import annotations

from heald import observe, provide
from heald_persistence.contracts import SessionPersistence
from heald_session import SessionId


@provide
def session_persistence() -> SessionPersistence:
    """Keep session logs where they outlive the process."""
    ...


@observe
async def session_deleted(id: SessionId) -> None:  # noqa: A002
    """Hear that a stored session went to the trash: what is derived from it may be forgotten."""
