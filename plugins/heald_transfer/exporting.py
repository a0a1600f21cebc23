"""Writes sessions to one file, which is there whole or not at all."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import BinaryIO

import attrs

from heald_query import SessionQuery
from heald_session import SessionId
from heald_transfer.errors import ExportExists, ExportUnwritable
from heald_transfer.exports import frames_of, manifest


@attrs.frozen
class Exported:
    """One session of an export."""

    id: SessionId
    events: int


async def with_descendants(query: SessionQuery, id: SessionId) -> list[SessionId]:  # noqa: A002
    """Return a session and every session that came of it, parents first."""
    return [id, *(record.id for record in (await query.relatives(id)).descendants)]


async def export_to(
    path: Path, query: SessionQuery, ids: Sequence[SessionId], *, replace: bool
) -> list[Exported]:
    """Write sessions to a file; raises `ExportExists`, `ExportUnwritable`, or what reading raises.

    The file is the owner's alone to read: a log holds what people said.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        file = await asyncio.to_thread(_create, new, path, replace=replace)
        with file:
            done = [one async for one in _write(file, query, ids)]
            await asyncio.to_thread(_sync, file)
        await asyncio.to_thread(_name, new, path, replace=replace)
    except OSError as error:
        raise ExportUnwritable(str(path), error.strerror or str(error)) from error
    finally:
        await asyncio.to_thread(new.unlink, missing_ok=True)
    return done


async def _write(
    file: BinaryIO, query: SessionQuery, ids: Sequence[SessionId]
) -> AsyncIterator[Exported]:
    await asyncio.to_thread(file.write, manifest(len(ids)))
    for id_ in ids:
        async with query.observe_session(id_) as seen:
            cut, end = seen.inherited_event_count, seen.end
            async for frame in frames_of(seen.header, cut, end, seen.events()):
                await asyncio.to_thread(file.write, frame)
        yield Exported(id_, end)


def _create(new: Path, path: Path, *, replace: bool) -> BinaryIO:
    """Begin the file under a name of its own, if it may have the other in the end."""
    if path.exists() and not replace:
        raise ExportExists(str(path))
    return os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _name(new: Path, path: Path, *, replace: bool) -> None:
    """Give a written file its name, in place of another's only if that was asked for."""
    if path.exists() and not replace:
        raise ExportExists(str(path))
    new.replace(path)
