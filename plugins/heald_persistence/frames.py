"""Frames of a sealed log: lines compressed together, behind a map of what they hold.

A block is two zstd frames: a *skippable* one with the zone map, which every decoder passes over,
and one with the lines. Nothing here is decompressed before its declared size was looked at.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import attrs
import msgspec
import zstandard

from heald_persistence.blobs import Citing
from heald_persistence.lines import BadLine, decoded, event_of, line_of, plainly

FRAME_LIMIT = 64 * 1024 * 1024
"""No frame decompresses to more, so that a small file cannot ask for any amount of memory."""
MAP_LIMIT = 1024 * 1024
"""No zone map is larger."""
MAP_MAGIC = (0x184D2A5E).to_bytes(4, "little")
"""Begins the skippable frame of a zone map."""
PREFIX = 8
"""The bytes of a skippable frame before its content: the magic, and the content's length."""
_FRAME_MAGIC = zstandard.FRAME_HEADER
_WINDOW_LIMIT = FRAME_LIMIT
_PIECE = 4096


class BadFrame(Exception):
    """A frame is not what was written, or asks for more than is given."""


class ZoneMap(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is in the frame that follows."""

    first: int
    """The seq of its first event; the others follow one by one."""
    count: int
    raw: int
    """How many bytes it decompresses to."""
    stored: int
    """How many bytes it has."""
    crc: int
    """The CRC-32 of those: zstd has bits that it looks at for nothing."""
    since: int
    """The time of its first event."""
    until: int
    types: tuple[str, ...]
    """Every type of event that occurs inside, in order of the alphabet."""
    cites: int = 0
    """How many of its events have their data in blobs."""
    escaped: int = 0
    """How many of its lines write their type with needless escapes, so that it is not found."""


@attrs.frozen
class Block:
    """A frame and its zone map as they are stored."""

    zone: ZoneMap
    head: bytes
    """The skippable frame."""
    frame: bytes

    @property
    def stored(self) -> bytes:
        """Return the bytes of both."""
        return self.head + self.frame


def block_of(lines: Sequence[bytes]) -> Block:
    """Compress lines of events into a block; raises `BadLine`."""
    raw = b"".join(lines)
    frame = zstandard.ZstdCompressor(write_checksum=True, write_content_size=True).compress(raw)
    zone = zone_of(lines, raw=len(raw), stored=len(frame), crc=zlib.crc32(frame))
    body = line_of(zone)
    return Block(zone, MAP_MAGIC + len(body).to_bytes(4, "little") + body, frame)


def zone_of(lines: Sequence[bytes], *, raw: int, stored: int, crc: int) -> ZoneMap:
    """Map lines of events; raises `BadLine`."""
    events = [event_of(line) for line in lines]
    return ZoneMap(
        first=events[0].seq,
        count=len(events),
        raw=raw,
        stored=stored,
        crc=crc,
        since=events[0].time,
        until=events[-1].time,
        types=tuple(sorted({event.type for event in events})),
        cites=sum(isinstance(event, Citing) for event in events),
        escaped=sum(plainly(e.type) not in line for e, line in zip(events, lines, strict=True)),
    )


_zone = msgspec.json.Decoder(ZoneMap)


def map_length(prefix: bytes) -> int:
    """Return the length of a zone map from the bytes before it; raises `BadFrame`."""
    length = int.from_bytes(prefix[4:PREFIX], "little")
    if len(prefix) < PREFIX or prefix[:4] != MAP_MAGIC or not 0 < length <= MAP_LIMIT:
        raise BadFrame("no zone map begins here")
    return length


def zone_map_of(body: bytes) -> ZoneMap:
    """Decode a zone map; raises `BadFrame`."""
    try:
        zone = decoded(body, _zone)
    except BadLine as error:
        raise BadFrame(f"its zone map: {error}") from error
    if zone.first < 0 or zone.count < 1 or zone.stored < 1:
        raise BadFrame("its zone map makes no sense")
    return zone


def check_frame(frame: bytes, zone: ZoneMap) -> None:
    """Raise `BadFrame` if a frame is not the one that its zone map is of."""
    size = _declared(frame)
    if size != zone.raw:
        raise BadFrame(f"it declares {size} bytes where {zone.raw} were written")
    if zlib.crc32(frame) != zone.crc:
        raise BadFrame("its checksum is wrong")


def decompress(frame: bytes, zone: ZoneMap) -> bytes:
    """Decompress a whole frame that is as its zone map says; raises `BadFrame`."""
    check_frame(frame, zone)
    try:
        return zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise BadFrame(str(error)) from error


def remains(frame: bytes) -> bytes:
    """Return what can still be had of a damaged frame: whole lines are good by their checksums.

    Raises `BadFrame` if it asks for more than is given.
    """
    size = _declared(frame)
    found = bytearray()
    decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW_LIMIT)
    try:
        # Without its checksum the decoder hands out the blocks before it fails, if it fails.
        with decompressor.stream_reader(_unchecked(frame)) as reader:
            while len(found) < size and (piece := reader.read(_PIECE)):
                found += piece
    except zstandard.ZstdError:
        pass
    return bytes(found)


def frame_length(data: bytes | memoryview) -> int:
    """Return how long a frame is, by its block headers; raises `BadFrame`."""
    place = _header_length(data)
    while True:
        head = int.from_bytes(data[place : place + 3], "little")
        last, kind, size = head & 1, head >> 1 & 3, head >> 3
        place += 3 + (1 if kind == 1 else size)
        if place > len(data) or kind == 3:  # noqa: PLR2004 - the reserved kind of block
            raise BadFrame("it is cut short")
        if last:
            break
    return place + 4 * _parameters(data).has_checksum


def frames_in(data: bytes) -> Iterator[bytes]:
    """Yield whatever may be a frame in bytes whose structure is not known."""
    place = data.find(_FRAME_MAGIC)
    while place >= 0:
        try:
            length = frame_length(memoryview(data)[place:])
        except BadFrame:
            length = len(data) - place
            yield data[place:]
            length = len(_FRAME_MAGIC)  # what looked like a frame may hide one that is
        else:
            yield data[place : place + length]
        place = data.find(_FRAME_MAGIC, place + length)


def _declared(frame: bytes) -> int:
    """Return the size that a frame declares, if it may be decompressed; raises `BadFrame`."""
    parameters = _parameters(frame)
    size: int = parameters.content_size
    if size == zstandard.CONTENTSIZE_UNKNOWN:
        raise BadFrame("it does not say how large it is")
    if size > FRAME_LIMIT or parameters.window_size > _WINDOW_LIMIT:
        raise BadFrame(f"it asks for {size} bytes; {FRAME_LIMIT} are the most")
    return size


def _parameters(frame: bytes | memoryview) -> zstandard.FrameParameters:
    try:
        return zstandard.get_frame_parameters(frame)
    except zstandard.ZstdError as error:
        raise BadFrame(str(error)) from error


def _header_length(frame: bytes | memoryview) -> int:
    try:
        return zstandard.frame_header_size(frame)
    except zstandard.ZstdError as error:
        raise BadFrame(str(error)) from error


def _unchecked(frame: bytes) -> bytes:
    """Return a frame that claims to have no checksum."""
    if not _parameters(frame).has_checksum:
        return frame
    return frame[:4] + bytes((frame[4] & ~4,)) + frame[5:-4]
