"""Payloads too large for a line: each in a file of its own, named by the hash of what it holds.

An event whose data is over `BLOB_OVER` bytes has `blob` on its line in place of `data`. The file is
stored and synced before any line that cites it, so a citation never dangles; a file that no line
cites is what a crash between the two leaves, and harmless.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import attrs
import msgspec

from heald_persistence import disk
from heald_persistence.contracts import Damage
from heald_persistence.directory import Directory
from heald_persistence.source import Counts
from heald_session import Event, EventInvalid, before

DIRECTORY = "blobs"
"""Where the blobs are in a session's directory."""
BLOB_OVER = 256 * 1024
BLOB_LIMIT = 1024 * 1024 * 1024
"""No payload is larger, so that one citation cannot ask for any amount of memory."""


class Blob(msgspec.Struct, frozen=True):
    """What a line says of a payload that is not on it."""

    sha256: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    size: Annotated[int, msgspec.Meta(ge=0)]

    @property
    def file(self) -> str:
        """The file, relative to the session's directory."""
        return f"{DIRECTORY}/{self.sha256}"


class Citing(Event, frozen=True, omit_defaults=True, kw_only=True):
    """An event as its line has it, with its data elsewhere."""

    blob: Blob
    encoded: msgspec.Raw = msgspec.field(name="data", default=msgspec.Raw())


@attrs.frozen(eq=False)
class Payload:
    """Data that goes to a blob."""

    blob: Blob
    data: msgspec.Raw


class BadBlob(Exception):
    """A blob is missing, or is not what was stored."""


def cite(event: Event) -> tuple[Event, Payload | None]:
    """Return the event as its line should have it, and what has to be stored before the line.

    Raises `EventInvalid` if the data is too large for any reader.
    """
    data = event.encoded
    size = len(data)
    if size <= BLOB_OVER:
        return event, None
    if size > BLOB_LIMIT:
        reason = f"its data has {size} bytes; {BLOB_LIMIT} are the most"
        raise EventInvalid(event.type, None, reason)
    blob = Blob(hashlib.sha256(data).hexdigest(), size)
    citing = Citing(
        seq=event.seq,
        type=event.type,
        time=event.time,
        blob=blob,
        v=event.v,
        required=event.required,
        surface=event.surface,
        sources=event.sources,
    )
    return citing, Payload(blob, data)


@attrs.define(eq=False)
class BlobWriter:
    """Stores the blobs of one session; its methods block."""

    _session: Path
    """The session's directory."""
    _source: Path | None = None
    """The directory of the session this one was forked from, which may have the same blobs."""
    _lasts: bool = False
    """Whether the name of the blobs' directory is known to last."""
    _failed: bool = False
    """Whether the last call failed, so that what it left is worth nothing."""

    def keep(self, payloads: Iterable[Payload]) -> None:
        """Store payloads so that they last, with one of them in memory at a time.

        Raises `OSError`, and then no line may cite them.
        """
        folder = self._session / DIRECTORY
        kept: set[str] = set()
        try:
            for payload in payloads:
                if payload.blob.sha256 not in kept:
                    self._keep(folder, payload)
                    kept.add(payload.blob.sha256)
            if kept:
                self._sync(folder)
        except OSError:
            self._failed = True
            raise
        self._failed = False

    def _keep(self, folder: Path, payload: Payload) -> None:
        if not folder.exists():
            disk.make_directory(folder)
        if self._failed or not self._stored(folder, payload.blob):
            _write(folder, payload)

    def _sync(self, folder: Path) -> None:
        # Even of a blob that was found the name may not last yet: who put it there may have died.
        disk.sync_directory(folder)
        if not self._lasts:
            disk.sync_directory(self._session)
            self._lasts = True

    def _stored(self, folder: Path, blob: Blob) -> bool:
        """Say whether a blob is there, or could be taken over from the source."""
        if _is_whole(folder.parent, blob):
            return True
        # A link to bytes that have rotted would lose what the caller still has.
        if self._source is None or not _is_whole(self._source, blob):
            return False
        try:
            disk.link(self._source / blob.file, folder / blob.sha256)
        except OSError:  # another file system, or one without links
            return False
        return True


def _write(folder: Path, payload: Payload) -> None:
    """Write a blob under a name that none has, then give it its own."""
    making = folder / ".making"  # there is one writer, so what has the name is left by a crash
    with contextlib.suppress(FileNotFoundError):
        making.unlink()
    try:
        disk.write_file(making, payload.data)
        disk.rename(making, folder / payload.blob.sha256)
    except BaseException:
        with contextlib.suppress(OSError):
            making.unlink()
        raise


def _is_whole(session: Path, blob: Blob) -> bool:
    try:
        _read(session / blob.file, blob)
    except BadBlob:
        return False
    return True


class BlobReader:
    """Reads the blobs of one session; its methods block, and one thread at a time uses it."""

    def __init__(self, session: Directory, counts: Counts) -> None:
        self._session = session
        self._counts = counts

    def filled(self, events: list[Event]) -> Iterator[list[Event] | Damage]:
        """Yield events with their data, in parts with at most one blob each.

        In the place of an event whose blob is bad there is the damage.
        """
        start = 0
        for place, event in enumerate(events):
            if type(event) is not Citing:
                continue
            if start < place:
                yield events[start:place]
            start = place + 1
            yield self._resolved(event)
        if start < len(events):
            yield events[start:] if start else events

    def _resolved(self, event: Citing) -> list[Event] | Damage:
        try:
            data = _read(event.blob.file, event.blob, self._session.fd)
        except BadBlob as error:
            return _damage(event, str(error))
        self._counts.bytes_read += len(data)
        return [_with_data(event, data)]


def _with_data(event: Citing, data: bytes) -> Event:
    return Event(
        event.seq,
        event.type,
        event.time,
        msgspec.Raw(data),
        v=event.v,
        required=event.required,
        surface=event.surface,
        sources=event.sources,
    )


def _read(path: Path | str, blob: Blob, directory: int | None = None) -> bytes:
    """Read a blob and check it; raises `BadBlob`."""
    if blob.size > BLOB_LIMIT:
        raise BadBlob(f"it would have {blob.size} bytes; {BLOB_LIMIT} are the most")
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with open(os.open(path, flags, dir_fd=directory), "rb") as file:  # noqa: PTH123 - a descriptor
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise BadBlob("it is not a file")
            if found.st_size != blob.size:
                raise BadBlob(f"it has {found.st_size} bytes instead of {blob.size}")
            data = file.read(blob.size)
    except OSError as error:
        raise BadBlob(str(error.strerror)) from error
    if hashlib.sha256(data).hexdigest() != blob.sha256:
        raise BadBlob("it does not hold what its name says")
    return data


def _damage(event: Citing, reason: str) -> Damage:
    return Damage(
        kind="blob",
        file=event.blob.file,
        offset=0,
        first=before(event.seq),
        count=1,
        types=frozenset((event.type,)),
        reason=reason,
    )
