"""Brings the sessions of files into storage, each of them whole or not at all."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import attrs

from heald import HealdError
from heald_persistence import SessionPersistence
from heald_session import checked_id
from heald_transfer import exports, reference
from heald_transfer.arrivals import Arrival, Unfit
from heald_transfer.errors import FileUnreadable, NothingToImport
from heald_transfer.lines import Lines


@attrs.frozen
class Imported:
    """What became of one session, or of a file that could not be read on."""

    path: Path
    id: str | None
    events: int = 0
    notes: tuple[str, ...] = ()
    error: HealdError | None = None
    """Why it was not imported."""
    is_settled: bool = False
    """Whether nothing is open in it that a resume would have to close."""


def files_in(place: Path) -> list[Path]:
    """Return the files to import: the one that is named, or those under a directory.

    Raises `NothingToImport`.
    """
    if not place.is_dir():
        return [place]
    suffixes = (exports.SUFFIX, reference.SUFFIX)
    found = [
        Path(folder, name)
        for folder, _, names in os.walk(place)
        for name in names
        if name.endswith(suffixes)
    ]
    if not found:
        raise NothingToImport(str(place))
    return sorted(found)


async def import_file(storage: SessionPersistence, path: Path) -> AsyncIterator[Imported]:
    """Import the sessions of a file one after the other, and say what became of each."""
    arriving = sessions_in(path)
    while True:
        try:
            found = await asyncio.to_thread(next, arriving, None)
        except HealdError as error:
            yield Imported(path, None, error=error)
            return
        if found is None:
            return
        yield await _store(storage, path, found)


def sessions_in(path: Path) -> Iterator[Arrival]:
    """Read the sessions of a file, whichever form it has; raises `FileUnreadable`. Blocks."""
    try:
        with path.open("rb") as file:
            lines = Lines(file)
            yield from _sessions(lines)
    except Unfit as error:
        raise FileUnreadable(str(path), str(error)) from error
    except OSError as error:
        raise FileUnreadable(str(path), str(error.strerror)) from error


def _sessions(lines: Lines) -> Iterator[Arrival]:
    first = lines.next()
    if first is not None and exports.is_export(first):
        return exports.arrivals(first, lines)
    if first is not None and reference.is_reference(first):
        return reference.arrivals(first, lines)
    raise Unfit("it is no export, and no session log of the reference system")


async def _store(storage: SessionPersistence, path: Path, found: Arrival) -> Imported:
    id_ = found.header.id
    try:
        checked_id(id_)
        writer = await storage.create(found.header, found.cut)
        try:
            writer.append(found.events)
            await writer.flush()
        except BaseException:
            await writer.discard()
            raise
        await writer.close()
    except HealdError as error:
        return Imported(path, id_, error=error)
    return Imported(path, id_, len(found.events), found.notes, is_settled=_is_settled(found))


def _is_settled(found: Arrival) -> bool:
    """Say whether a log has no open turn, so that resuming it adds nothing."""
    turns = (e.type for e in reversed(found.events) if e.type in ("turn/start", "turn/end"))
    return next(turns, "turn/end") == "turn/end"
