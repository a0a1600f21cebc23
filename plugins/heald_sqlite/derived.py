"""A SQLite file of derived data: used by one thread, left if damaged, made anew if deleted."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

import apsw

from heald_sqlite.errors import ResetFailed
from heald_sqlite.opening import OpenFile, alone, clear, refusal, transaction
from heald_sqlite.schema import Schema

T = TypeVar("T")
_logger = logging.getLogger("heald_sqlite")


class DerivedDatabase:
    """One file of derived data, and the one thread that touches it.

    Everything in it can be made again, so trouble costs the work in hand and a line in the log. A
    file that is damaged or not ours is left where it is, and the next name is begun. A file that
    was deleted is begun anew, also while others have it open. Once closed, it passes everything
    over.
    """

    def __init__(self, directory: Path, schema: Schema) -> None:
        self._directory = directory
        self._schema = schema
        self._number: int | None = None
        """Which of its names is in use; None until one had to be found."""
        self._file: OpenFile | None = None
        self._told: tuple[Path, str] | None = None
        """What was last told of which file, so that trouble that lasts is told of once."""
        self._thread = ThreadPoolExecutor(1, f"heald-{schema.name}")
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        try:
            closing = asyncio.get_running_loop().run_in_executor(self._thread, self._close)
            await asyncio.shield(closing)  # work that waits goes when its waiter goes; not this
        finally:
            self._thread.shutdown(wait=False)

    @property
    def path(self) -> Path:
        """The file that is in use, or will be."""
        if self._number is None:
            self._number = self._latest()
        suffix = f".{self._number}" if self._number else ""
        return self._directory / f"{self._stem}{suffix}.sqlite"

    @property
    def _stem(self) -> str:
        return f"{self._schema.name}-v{self._schema.version}"

    async def write(self, work: Callable[[apsw.Connection], None]) -> bool:
        """Run `work` in one transaction, and say whether it was kept."""

        def whole(connection: apsw.Connection) -> bool:
            with transaction(connection, "BEGIN IMMEDIATE"):
                work(connection)
            return True

        return await self._run(lambda: self._attempt(whole)) or False

    async def read(self, work: Callable[[apsw.Connection], T]) -> T | None:
        """Run `work` on what is there at one moment.

        None if it could not be run, or nothing was ever written.
        """

        def whole(connection: apsw.Connection) -> T:
            with transaction(connection, "BEGIN"):
                return work(connection)

        return await self._run(lambda: self._attempt(whole, new=False))

    async def reset(self) -> None:
        """Forget everything, also while others have the file open; raises `ResetFailed`."""
        if not await self.write(lambda connection: clear(connection, self._schema)):
            raise ResetFailed(str(self.path), self._told[1] if self._told else "it is closed")

    async def _run(self, call: Callable[[], T]) -> T | None:
        if self._closed:
            return None
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def _attempt(self, work: Callable[[apsw.Connection], T], *, new: bool = True) -> T | None:
        """Run `work`, on a new file only if one is wanted; None if it could not be run."""
        try:
            if not new and self._file is None and not self.path.exists():
                return None
            try:
                found = work(self._opened())
            except (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError) as error:
                self._leave_behind(_described(error))
                found = work(self._opened())
        except (apsw.Error, OSError) as error:
            self._tell(self.path, _described(error), "this was passed over")
            self._close()
            return None
        self._told = None
        return found

    def _opened(self) -> apsw.Connection:
        if self._file is not None and not self._file.stands():
            self._close()
            self._number = None
        if self._file is None:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with alone(self._directory / f"{self._stem}.lock"):
                while (reason := refusal(self.path, self._schema)) is not None:
                    self._leave_behind(reason)
                self._file = OpenFile.open(self.path, self._schema)
        return self._file.connection

    def _latest(self) -> int:
        """Return the highest number there is a file of: those before it were left behind."""
        name = re.compile(re.escape(self._stem) + r"\.([1-9][0-9]{0,8})\.sqlite")
        with suppress(OSError):
            found = (name.fullmatch(file.name) for file in self._directory.iterdir())
            return max((int(match[1]) for match in found if match is not None), default=0)
        return 0

    def _leave_behind(self, reason: str) -> None:
        damaged = self.path
        self._close()
        self._number = (self._number or 0) + 1
        self._tell(damaged, reason, f"it is left as it is, and {self.path.name} is used")

    def _tell(self, path: Path, reason: str, consequence: str) -> None:
        if self._told != (path, reason):
            _logger.warning("%s: %s; %s", path, reason, consequence)
        self._told = (path, reason)

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


def _described(error: Exception) -> str:
    """Say what is wrong; SQLite says most of it by a code only."""
    code = getattr(error, "extendedresult", -1)
    name = apsw.mapping_extended_result_codes.get(code) or apsw.mapping_result_codes.get(code)
    return f"{error} ({name})" if name is not None else str(error)
