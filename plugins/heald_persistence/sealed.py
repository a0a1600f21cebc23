"""The sealed part of a log, for reading: its blocks, found by index or by walking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal

import msgspec

from heald_persistence.blobs import Citing
from heald_persistence.contracts import Damage
from heald_persistence.frames import (
    FRAME_LIMIT,
    MAP_MAGIC,
    PREFIX,
    BadFrame,
    ZoneMap,
    check_frame,
    decompress,
    frames_in,
    map_length,
    remains,
    zone_map_of,
    zone_of,
)
from heald_persistence.index import Index, Region, bit_of, region_of
from heald_persistence.lines import BadLine, events_of, places_of
from heald_persistence.picking import chosen, events_in
from heald_persistence.sieve import Part, Sieve, sift
from heald_persistence.source import Source
from heald_session import LogOffset

_HEAD_BYTES = 1024
"""Most zone maps come with one read of this many bytes."""
_PIECE = 1024 * 1024
_RUBBLE_LIMIT = 4 * FRAME_LIMIT
"""No more is looked through at once where the structure is lost."""


class Sealed:
    """The first `size` bytes of a sealed log, which hold the events up to `base`.

    Both are None if the tail cannot tell; then the log is as long as its blocks are good. Every
    method blocks.
    """

    def __init__(
        self, source: Source, size: int | None, base: int | None, index: Index | None = None
    ) -> None:
        self._source = source
        self._stop = source.size if size is None else min(size, source.size)
        self._index = None if index is None or not self._is_trusted(index, base) else index
        last = None if self._index is None else self._index.region(self._index.count - 1)
        walked = [*(self._walk(0, 0) if last is None else self._walk(last.stop, last.end))]
        if size is None:
            walked = _sure([*self._indexed(None), *walked], base)
            self._index = last = None
        else:
            _check_end(walked, self._stop, base or 0, 0 if last is None else last.end)
        self._walked = walked
        """What the index does not have."""
        self.end = walked[-1].end if walked else 0 if last is None else last.end
        """The offset that the blocks reach."""

    @cached_property
    def regions(self) -> list[Region]:
        """All of its parts, in order."""
        return [*self._indexed(None), *self._walked]

    def _indexed(self, wanted: frozenset[str] | None) -> list[Region]:
        return [] if self._index is None else self._index.regions(wanted)

    def parts(self, start: int, stop: int | None, wanted: frozenset[str] | None) -> Iterator[Part]:
        """Yield the events of a range and of some types, with damage that lies in it."""
        for region in self._regions_with(wanted):
            if stop is not None and region.first >= stop:
                break
            if region.end <= start:
                continue
            for part in self._region_parts(region, wanted):
                some = part if isinstance(part, Damage) else chosen(part, start, stop, wanted)
                if some:
                    yield some

    def _regions_with(self, wanted: frozenset[str] | None) -> list[Region]:
        """Return the parts that may hold events of some types."""
        if wanted is None:
            return self.regions
        bits = sum({bit_of(name) for name in wanted})
        walked = (r for r in self._walked if r.mask is None or r.mask & bits)
        return [*self._indexed(wanted), *walked]

    def check(self) -> Iterator[Damage]:
        """Yield what is wrong with the structure and the checksums, decoding events only then."""
        for region in self.regions:
            try:
                check_frame(self._frame(region), self.zone(region))
            except BadFrame:
                parts = self._region_parts(region, None)
                yield from (part for part in parts if isinstance(part, Damage))

    def false_maps(self) -> Iterator[Damage]:
        """Yield the zone maps that do not say what their frames hold, where both are whole."""
        for region in self.regions:
            try:
                zone = self.zone(region)
                raw = self._decompressed(region, zone)
                lines = [raw[start:stop] for start, stop in places_of(raw)]
                found = zone_of(lines, raw=len(raw), stored=zone.stored, crc=zone.crc)
            except (BadFrame, BadLine):
                continue  # that is damage of another kind
            if found != zone:
                reason = "its zone map does not say what its frame holds"
                yield self._harmless(region, "zone_map", reason)

    def zone(self, region: Region) -> ZoneMap:
        """Return what a region's zone map says; raises `BadFrame`."""
        if region.zone is not None:
            return region.zone
        if not region.head:
            raise BadFrame("no zone map begins here")
        found = self._block_at(region.place, region.head)
        if (found.stop, found.first, found.end) != (region.stop, region.first, region.end):
            raise BadFrame("log.idx says something else")
        assert found.zone is not None  # noqa: S101 - that of a block is known
        return found.zone

    def sound(self, region: Region) -> tuple[Region, list[Citing]] | None:
        """Return a region with its zone map, and which of its events cite blobs, if it is whole."""
        try:
            zone = self.zone(region)
            if zone.cites:
                events = events_of(self._decompressed(region, zone))
            else:
                check_frame(self._frame(region), zone)
                events = []
        except BadFrame:
            return None
        citing = [event for event in events if isinstance(event, Citing)]
        return region_of(region.place, region.head, zone), citing

    def bytes_until(self, stop: int, size: int) -> Iterator[bytes]:
        """Yield the bytes of the first blocks in pieces."""
        for place in range(0, stop, size):
            yield self._source.at(place, min(size, stop - place))

    def _is_trusted(self, index: Index, base: int | None) -> bool:
        """Take of an index what is of these bytes; say whether the last of it is true.

        It is if the tail says that the blocks end there; otherwise the last zone map has to tell.
        """
        index.cut(self._stop)
        if not index.count:
            return False
        last = index.region(index.count - 1)
        if (last.stop, last.end) == (self._stop, base):
            return True
        try:
            self.zone(last)
        except BadFrame:
            return False
        return True

    def _walk(self, place: int, first: int) -> Iterator[Region]:
        """Yield regions from a place on; where the structure is lost, up to where it is found."""
        while place < self._stop:
            found = self._whole_block_at(place, first) or self._next_block(place + 1, first)
            begin, seq = (self._stop, first) if found is None else (found.place, found.first)
            if begin > place or seq > first:
                yield Region(place, begin, first, seq)
            if found is None:
                return
            yield found
            place, first = found.stop, found.end

    def _whole_block_at(self, place: int, first: int) -> Region | None:
        try:
            found = self._block_at(place)
        except BadFrame:
            return None
        return found if found.first >= first else None

    def _next_block(self, place: int, first: int) -> Region | None:
        """Find the next place with a good zone map."""
        while place < self._stop:
            piece = self._source.at(place, min(_PIECE + len(MAP_MAGIC) - 1, self._stop - place))
            at = piece.find(MAP_MAGIC)
            while at >= 0:
                if (found := self._whole_block_at(place + at, first)) is not None:
                    return found
                at = piece.find(MAP_MAGIC, at + 1)
            place += _PIECE
        return None

    def _block_at(self, place: int, length: int = _HEAD_BYTES) -> Region:
        """Read a zone map, which may have another length than is guessed."""
        data = self._source.at(place, min(length, self._stop - place))
        head = PREFIX + map_length(data[:PREFIX])
        if head > len(data):
            data += self._source.at(place + len(data), min(head, self._stop - place) - len(data))
        return region_of(place, head, zone_map_of(data[PREFIX:head]))

    def _decompressed(self, region: Region, zone: ZoneMap) -> bytes:
        frame = self._frame(region)
        self._source.counts.frames_decoded += 1
        return decompress(frame, zone)

    def _frame(self, region: Region) -> bytes:
        return self._bytes(region, region.head)

    def _bytes(self, region: Region, start: int = 0) -> bytes:
        stop = min(region.stop, self._stop, region.place + _RUBBLE_LIMIT)
        return self._source.at(region.place + start, stop - region.place - start)

    def _region_parts(self, region: Region, wanted: frozenset[str] | None) -> Iterator[Part]:
        zone: ZoneMap | None = None
        try:
            zone = self.zone(region)
            if wanted is not None and wanted.isdisjoint(zone.types):
                return
            events = events_in(self._decompressed(region, zone), zone, wanted)
        except (BadFrame, msgspec.MsgspecError) as error:
            yield from self._rescued(region, zone, str(error))
        else:
            yield events

    def _rescued(self, region: Region, zone: ZoneMap | None, reason: str) -> Iterator[Part]:
        """Yield what can be had of a damaged region, line by line."""
        sieve = Sieve(self._source.name, region.first, "frame", limit=region.end, reason=reason)
        if region.place == region.stop:
            sieve.kind, sieve.reason = "missing", "the log was cut, or pieced together"
        if zone is not None:
            sieve.types = frozenset(zone.types)
        data = self._bytes(region)
        frames: Iterable[bytes] = frames_in(data) if zone is None else (data[region.head :],)
        lost = False
        for part in sift(sieve, self._rescued_lines(region, frames, sieve)):
            lost = lost or isinstance(part, Damage)
            yield part
        if (damage := sieve.end(region.place)) is not None:
            yield damage
        elif not lost:
            yield self._harmless(region, "frame" if zone else "zone_map", reason)

    def _rescued_lines(
        self, region: Region, frames: Iterable[bytes], sieve: Sieve
    ) -> Iterator[tuple[int, bytes]]:
        for frame in frames:
            self._source.counts.frames_decoded += 1
            try:
                raw = remains(frame)
            except BadFrame as error:
                sieve.spoil(region.place, str(error))
                continue
            for start, stop in places_of(raw):
                yield region.place, raw[start:stop]

    def _harmless(self, region: Region, kind: Literal["frame", "zone_map"], reason: str) -> Damage:
        """Describe what is wrong and has cost no event."""
        return Damage(
            kind=kind,
            file=self._source.name,
            offset=region.place,
            first=LogOffset(region.first),
            count=0,
            types=None,
            reason=reason,
        )


def _check_end(walked: list[Region], stop: int, base: int, reached: int) -> None:
    """Let the parts end where the tail begins, whatever was found behind what is known."""
    end = walked[-1].end if walked else reached
    if end < base and walked and not walked[-1].head:
        last = walked.pop()
        walked.append(Region(last.place, last.stop, last.first, base))
    elif end < base:
        walked.append(Region(stop, stop, end, base))


def _sure(regions: list[Region], base: int | None) -> list[Region]:
    """Return the regions that hold what was sealed, where the tail does not say how much was."""
    while regions and (not regions[-1].head or (base is not None and regions[-1].first >= base)):
        regions.pop()
    return regions
