"""A session's directory as readers have it: held open, so that all they open in it is of one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from heald_persistence.errors import HeaderDamaged, SessionDamaged, StorageUnavailable
from heald_session import SessionNotFound


class Directory:
    """A directory that is held open; whatever gets its name later is another directory.

    Every method blocks, and one thread at a time uses it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    @classmethod
    def of(cls, path: Path, id: str) -> Self:  # noqa: A002
        """Open the directory that a session has.

        Raises `SessionNotFound`, `HeaderDamaged` or `StorageUnavailable`.
        """
        try:
            return cls(path)
        except FileNotFoundError:
            raise SessionNotFound(id) from None
        except OSError as error:
            raise unreadable(path, id, error, HeaderDamaged) from error

    def stands(self) -> bool:
        """Say whether its path still names this directory."""
        try:
            return os.path.samestat(os.fstat(self.fd), self.path.stat())
        except OSError:
            return False

    def content(self, name: str) -> bytes:
        """Return what a file in it holds; raises `OSError`."""
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.fd)
        try:
            return content_of(fd)[0]
        finally:
            os.close(fd)

    def close(self) -> None:
        """Let it go."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def content_of(fd: int) -> tuple[bytes, os.stat_result]:
    """Return what an open file holds, and what is known of it, in the quickest way."""
    found = os.fstat(fd)
    data = os.read(fd, found.st_size + 1)
    while len(data) < found.st_size and (more := os.read(fd, found.st_size + 1 - len(data))):
        data += more
    return data, found


def unreadable(
    path: Path,
    id: str,  # noqa: A002
    error: OSError,
    damaged: type[SessionDamaged] = SessionDamaged,
) -> SessionDamaged | StorageUnavailable:
    """Tell what is not there, or is something else, from what we may not read."""
    if isinstance(error, PermissionError):
        return StorageUnavailable(str(path), str(error.strerror))
    return damaged(id, f"{path.name}: {error.strerror}")
