"""Opening a file of derived data: alone, only if it is ours, made if it is not there."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import apsw
import attrs

from heald_sqlite.schema import Schema

BUSY_MS = 1_000
"""How long another process may keep us waiting before a write is dropped."""

OPENING_S = 10.0
"""How long others may keep us from opening; a process that was stopped while it did must not."""

_COMPANIONS = ("-wal", "-shm", "-journal")
"""What SQLite appends to a database's name for the files beside it."""


@attrs.frozen(eq=False)
class OpenFile:
    """An open database, and which file it is: another may have got its name."""

    path: Path
    connection: apsw.Connection
    _stat: os.stat_result

    @classmethod
    def open(cls, path: Path, schema: Schema) -> Self:
        """Open a file, or make it if it is not there or empty; raises `apsw.Error` or `OSError`."""
        _make(path)
        connection = apsw.Connection(
            _uri(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
        )
        try:
            connection.set_busy_timeout(BUSY_MS)
            if not connection.pragma("application_id"):
                _fill(connection, schema)
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "normal")
            return cls(path, connection, path.stat())
        except BaseException:
            connection.close()
            raise

    def stands(self) -> bool:
        """Say whether the name is still this file's: people may delete it at any time."""
        try:
            return os.path.samestat(self._stat, self.path.stat())
        except OSError:
            return False

    def close(self) -> None:
        """Let the file go, and leave what is beside the name to whoever has it now."""
        if not self.stands():
            self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self.connection.close()


def refusal(path: Path, schema: Schema) -> str | None:
    """Say why a file cannot be used, without changing it or making one beside it.

    SQLite does the looking: were a descriptor of our own closed, the system would take away every
    lock that this process has on the file.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return "not a file"
    if not found.st_size:
        return None
    try:
        marks = _marks(path)
    except (apsw.NotADBError, apsw.CorruptError):
        return "not a SQLite database"
    if marks != (schema.application_id, schema.version):
        return "another program's database"
    return None


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Keep other processes from opening: two that make one database at once can both fail."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def transaction(connection: apsw.Connection, begin: str) -> Iterator[None]:
    """Keep all that is done inside, or none of it; what is read is of one moment."""
    connection.execute(begin)
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # SQLite has undone some failures by itself
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def clear(connection: apsw.Connection, schema: Schema) -> None:
    """Make the tables anew, inside a transaction; others that have the file open see that."""
    tables = (
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%'"
        " ESCAPE '\\' ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC LIMIT 1"
    )
    # One by one, since a virtual table takes others with it.
    while (name := connection.execute(tables).get) is not None:
        connection.execute(f'DROP TABLE "{name}"')
    connection.execute(schema.script)


def _take(descriptor: int) -> None:
    deadline = time.monotonic() + OPENING_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                message = f"others have been opening it for {OPENING_S:g} s"
                raise TimeoutError(message) from None
            time.sleep(0.005)


def _make(path: Path) -> None:
    """Make an empty file that is its owner's alone, unless there is a file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    os.close(descriptor)
    for companion in _COMPANIONS:  # of a file that was deleted, perhaps while it was open
        path.with_name(path.name + companion).unlink(missing_ok=True)


def _fill(connection: apsw.Connection, schema: Schema) -> None:
    """Make the tables before WAL is on, so that the marks are in the file's own header."""
    with transaction(connection, "BEGIN IMMEDIATE"):
        connection.execute(schema.script)
        connection.pragma("application_id", schema.application_id)
        connection.pragma("user_version", schema.version)


def _marks(path: Path) -> tuple[int, int]:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(_uri(path) + "?immutable=1", flags=flags)
    try:
        return connection.pragma("application_id"), connection.pragma("user_version")
    finally:
        connection.close()


def _uri(path: Path) -> str:
    """Name a file so that SQLite finds it whatever bytes its name has, even such as are no text."""
    return path.absolute().as_uri()
