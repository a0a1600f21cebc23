"""The row that keeps session logs on the local disk."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from pathlib import Path

import attrs

from heald import Plugin, implements
from heald_doctor import Check, checks
from heald_persistence.contracts import SessionPersistence
from heald_persistence.errors import PlatformUnsupported
from heald_persistence.hookspecs import session_deleted, session_persistence
from heald_persistence.logs_check import logs_check
from heald_persistence.trash import Trash

MEBIBYTE = 1024 * 1024


@attrs.frozen
class PersistenceConfig:
    """Where logs are kept, and how much may wait for a disk that fails."""

    root: str | None = None
    """The directory of the sessions, from `HEALD_HOME` on; `sessions` if absent."""
    queue_bytes: int = 64 * MEBIBYTE
    """How much of one session may wait to be written before appends are refused."""
    seal_bytes: int = 256 * 1024
    """How much of a session is compressed at a time."""

    def place_from(self, home: Path) -> Path:
        """Return the directory of the sessions."""
        return home / Path(self.root or "sessions").expanduser()

    def trash_from(self, home: Path) -> Path:
        """Return the directory of the deleted sessions, on the same file system as the others."""
        return home / "trash" if self.root is None else self.place_from(home) / ".trash"


class PersistencePlugin(Plugin[PersistenceConfig]):
    """Keeps session logs under `HEALD_HOME`."""

    _storage: SessionPersistence

    async def start(self) -> None:
        if os.name == "nt":
            raise PlatformUnsupported(platform.system())
        # It needs modules that Windows lacks, and must be able to say so there.
        from heald_persistence.local import LocalPersistence  # noqa: PLC0415

        host, queue_bytes = self.scope.host, self.config.queue_bytes
        root = self.config.place_from(host.home)
        trash = Trash(self.config.trash_from(host.home))
        self._storage = LocalPersistence(
            root,
            queue_bytes,
            host.now,
            self.logger,
            seal_bytes=self.config.seal_bytes,
            trash=trash,
            on_deleted=lambda id_: host.scope.notify(session_deleted, id_),
        )

    @implements(session_persistence)
    def storage(self) -> SessionPersistence:
        """Offer the logs on disk."""
        return self._storage

    @implements(checks)
    def contribute_checks(self) -> Iterable[Check]:
        """Look at what is stored when `heald doctor` does."""
        return (logs_check(self._storage),)
