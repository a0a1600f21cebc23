"""The database file: opened under a lock, used by one thread, left behind when it is damaged."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar

import apsw

T = TypeVar("T")
_logger = logging.getLogger("heald_projection_cache")

SCHEMA_VERSION = 1
APPLICATION_ID = 0x48454C43
"""Marks a SQLite file as one of ours, in its header."""
BUSY_MS = 1_000
"""How long another process may keep us waiting before a write is dropped."""

_HEADER = struct.Struct(">60xi4xi28x")
"""A SQLite file's first bytes: `user_version` and `application_id` among them."""
_SCHEMA = """
CREATE TABLE checkpoints (
    session_id TEXT NOT NULL,
    key TEXT NOT NULL,
    identity TEXT NOT NULL,
    state_version INTEGER NOT NULL,
    "offset" INTEGER NOT NULL,
    witness TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (session_id, key)
)
"""


class Database:
    """One file of checkpoints, and the one thread that touches it.

    Everything in it is derived, so trouble costs the work in hand and a line in the log. A file
    that is damaged or not ours is left where it is, and the next name is begun.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._number = 0
        self._connection: apsw.Connection | None = None
        self._thread = ThreadPoolExecutor(1, "heald-checkpoints")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    @property
    def path(self) -> Path:
        """The file that is in use, or will be."""
        suffix = f".{self._number}" if self._number else ""
        return self._directory / f"checkpoints-v{SCHEMA_VERSION}{suffix}.sqlite"

    async def write(self, work: Callable[[apsw.Connection], None]) -> bool:
        """Run `work` in one transaction, and say whether it was kept."""

        def transaction(connection: apsw.Connection) -> bool:
            with _immediate(connection):
                work(connection)
            return True

        return await self._run(transaction) or False

    async def read(self, work: Callable[[apsw.Connection], T]) -> T | None:
        """Run `work`; None if it could not be run, or nothing was ever written."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._attempt_if_any, work)

    async def _run(self, work: Callable[[apsw.Connection], T]) -> T | None:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._attempt, work)

    def _attempt_if_any(self, work: Callable[[apsw.Connection], T]) -> T | None:
        if self._connection is None and not self.path.exists():
            return None
        return self._attempt(work)

    def _attempt(self, work: Callable[[apsw.Connection], T]) -> T | None:
        try:
            try:
                return work(self._opened())
            except (apsw.CorruptError, apsw.NotADBError) as error:
                self._leave_behind(str(error))
            return work(self._opened())
        except (apsw.Error, OSError) as error:
            _logger.warning("checkpoints in %s: %s; this one was passed over", self.path, error)
            self._close()
            return None

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opening():
                while (reason := _not_ours(self.path)) is not None:
                    self._leave_behind(reason)
                self._connection = _open(self.path)
        return self._connection

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Keep other processes from opening: two that make one database at once can both fail."""
        lock = self._directory / f"checkpoints-v{SCHEMA_VERSION}.lock"
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _leave_behind(self, reason: str) -> None:
        damaged = self.path
        self._close()
        self._number += 1
        _logger.warning(
            "%s: %s; it is left as it is, and %s is used", damaged, reason, self.path.name
        )

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _not_ours(path: Path) -> str | None:
    """Look at a file's header without SQLite, which might touch it; say why we cannot use it."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
    except FileNotFoundError:
        return None
    if not header:
        return None
    if len(header) < _HEADER.size or not header.startswith(b"SQLite format 3\0"):
        return "not a SQLite database"
    version, application = _HEADER.unpack(header)
    if (application, version) != (APPLICATION_ID, SCHEMA_VERSION):
        return "another program's database"
    return None


def _open(path: Path) -> apsw.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(BUSY_MS)
        if not connection.pragma("application_id"):
            _create(connection)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "normal")
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: apsw.Connection) -> None:
    """Make the schema before WAL is on, so that the marks are in the file's own header."""
    with _immediate(connection):
        connection.execute(_SCHEMA)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", SCHEMA_VERSION)


@contextmanager
def _immediate(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # SQLite has undone some failures by itself
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
