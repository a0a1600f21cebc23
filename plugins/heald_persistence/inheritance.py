"""What a forked session begins with: the source's own frames, as they are, and the lines behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import attrs

from heald_persistence import disk
from heald_persistence.blobs import BlobWriter, Citing, Payload
from heald_persistence.contracts import Damage
from heald_persistence.index import Region
from heald_persistence.lines import line_of
from heald_persistence.reading import LocalLog
from heald_persistence.sealed import Sealed
from heald_persistence.sieve import concerns, error_of
from heald_session import Event, LogOffset

_PIECE = 1024 * 1024


@attrs.frozen(eq=False)
class Inheritance:
    """The first events of a stored session, which is held open; every method blocks.

    Seqs do not change in a fork, so whole frames below the cut are copied and not made anew.
    """

    log: LocalLog
    regions: list[Region]
    """The frames that are taken over."""
    lines: list[bytes]
    """The events between those and the cut."""
    citing: list[Citing]
    """The events, in frames and lines, whose data is in blobs."""

    @classmethod
    def take(cls, log: LocalLog, cut: LogOffset) -> Self:
        """Look at all of it; raises `SessionDamaged` if any event of it is lost."""
        if log.end < cut:
            raise ValueError(f"session {log.header.id!r} has {log.end} events, not {cut}")
        regions: list[Region] = []
        lines: list[bytes] = []
        citing: list[Citing] = []
        if log.sealed is not None:
            for region, events in _frames(log.sealed, cut):
                regions.append(region)
                citing += events
        for event in _events(log, regions[-1].end if regions else 0, cut):
            lines.append(line_of(event))
            if isinstance(event, Citing):
                citing.append(event)
        return cls(log, regions, lines, citing)

    def copy_frames(self, path: Path) -> None:
        """Write the frames to a new file that lasts."""
        assert self.log.sealed is not None  # noqa: S101 - it has frames
        fd = disk.create(path)
        try:
            for piece in self.log.sealed.bytes_until(self.regions[-1].stop, _PIECE):
                disk.write(fd, piece)
            disk.sync(fd)
        finally:
            os.close(fd)

    def keep_blobs(self, blobs: BlobWriter) -> None:
        """Store what the events cite."""
        blobs.keep(self._payloads())

    def close(self) -> None:
        """Let the source go."""
        self.log.close()

    def _payloads(self) -> Iterator[Payload]:
        for event in self.citing:
            for part in self.log.filled(event):
                if isinstance(part, Damage):
                    raise error_of(self.log.header.id, part)
                for whole in part:
                    yield Payload(event.blob, whole.encoded)


def _frames(sealed: Sealed, cut: int) -> Iterator[tuple[Region, list[Citing]]]:
    """Yield the whole frames from the first on that end before the cut, and what in them cites."""
    for region in sealed.regions:
        if region.end > cut or (found := sealed.sound(region)) is None:
            return
        yield found


def _events(log: LocalLog, start: int, cut: LogOffset) -> Iterator[Event]:
    for part in log.parts(start, cut):
        if not isinstance(part, Damage):
            yield from part
        elif concerns(part, start, cut, None):
            raise error_of(log.header.id, part)
