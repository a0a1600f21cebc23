"""The row that keeps session logs in memory."""

from __future__ import annotations

import attrs

from heald import Plugin, RowContext, implements
from heald_persistence import SessionPersistence, session_deleted, session_persistence


@attrs.frozen
class MemoryPersistenceConfig:
    """Which logs the row keeps."""

    name: str | None = None
    """Rows of one process with the same name have the same logs, also one after another.

    So a host finds what an earlier one of its process kept. Without a name they are the row's own.
    """


class MemoryPersistencePlugin(Plugin[MemoryPersistenceConfig]):
    """Keeps session logs for as long as the process lives."""

    def __init__(self, context: RowContext[MemoryPersistenceConfig]) -> None:
        super().__init__(context)
        # Every host imports this module, and few keep logs in memory.
        from heald_persistence_memory.memory import MemoryPersistence  # noqa: PLC0415

        name = self.config.name
        kept = MemoryPersistence() if name is None else MemoryPersistence.named(name)
        told = context.scope.host.scope
        self._storage = kept.telling(lambda id_: told.notify(session_deleted, id_))

    @implements(session_persistence)
    def storage(self) -> SessionPersistence:
        """Offer the logs in memory."""
        return self._storage
