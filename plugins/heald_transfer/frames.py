"""Concatenated zstd frames, read one by one and never into more memory than a frame may take."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

import attrs
import zstandard

LIMIT = 256 * 1024 * 1024
"""Bytes that one frame may claim or take."""

_LARGEST_HEADER = 18
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_RLE, _RESERVED = 1, 3
_UNKNOWN = zstandard.CONTENTSIZE_UNKNOWN


class BadFrame(Exception):
    """Bytes that are no frame, or one that is refused; the message says why."""


@attrs.frozen
class Frame:
    """What one frame holds; of a torn one, what could still be had."""

    content: bytes
    torn: bool = False


def frames(file: BinaryIO) -> Iterator[Frame]:
    """Yield the frames of a file in order; only the last can be torn. Raises `BadFrame`.

    A frame that does not say how much it holds, or says more than `LIMIT`, is refused before
    anything of it is read.
    """
    while True:
        start = file.tell()
        head = file.read(_LARGEST_HEADER)
        if not head:
            return
        if int.from_bytes(head[:4], "little") in _SKIPPABLE:
            file.seek(start + 8 + int.from_bytes(head[4:8], "little"))
            continue
        if _is_torn(head) or (not head.strip(b"\0") and _only_zeros(file)):
            yield Frame(b"", torn=True)
            return
        file.seek(start)
        yield (frame := _frame(file, head, start))
        if frame.torn:
            return


def compress(content: bytes) -> bytes:
    """Return a frame that says how much it holds and checks what it gives back."""
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


def _is_torn(head: bytes) -> bool:
    """Say whether a file ends inside a frame's header."""
    if not head.startswith(zstandard.FRAME_HEADER[: len(head)]):
        return False
    return len(head) < _LARGEST_HEADER and _header_size(head) is None


def _header_size(head: bytes) -> int | None:
    try:
        size = zstandard.frame_header_size(head)
        zstandard.get_frame_parameters(head)
    except zstandard.ZstdError:
        return None
    return size


def _only_zeros(file: BinaryIO) -> bool:
    return not any(piece.strip(b"\0") for piece in iter(lambda: file.read(1024 * 1024), b""))


def _frame(file: BinaryIO, head: bytes, start: int) -> Frame:
    size = _header_size(head)
    if size is None:
        raise BadFrame(f"at byte {start} is no zstd frame")
    facts = zstandard.get_frame_parameters(head)
    if facts.content_size == _UNKNOWN:
        raise BadFrame(f"the frame at byte {start} does not say how much it holds")
    if max(facts.content_size, facts.window_size) > LIMIT:
        raise BadFrame(f"the frame at byte {start} claims {facts.content_size} bytes")
    stored, whole = _stored(file, size, start, checksum=bool(facts.has_checksum))
    if not whole:
        return Frame(_salvaged(stored), torn=True)
    try:
        return Frame(zstandard.ZstdDecompressor(max_window_size=LIMIT).decompress(stored))
    except zstandard.ZstdError as error:
        raise BadFrame(f"the frame at byte {start} is damaged: {error}") from error


def _stored(file: BinaryIO, header: int, start: int, *, checksum: bool) -> tuple[bytes, bool]:
    """Read a frame's own bytes, block by block, and say whether they are all there."""
    stored = bytearray(file.read(header))
    last = False
    while not last:
        block = file.read(3)
        word = int.from_bytes(block, "little")
        last, kind, size = bool(word & 1), word >> 1 & 3, word >> 3
        if kind == _RESERVED:
            raise BadFrame(f"the frame at byte {start} is damaged")
        body = file.read(1 if kind == _RLE else size)
        stored += block + body
        if len(block) < 3 or len(body) < (1 if kind == _RLE else size):  # noqa: PLR2004
            return bytes(stored), False
        if len(stored) > LIMIT:
            raise BadFrame(f"the frame at byte {start} takes more than {LIMIT} bytes")
    ending = file.read(4) if checksum else b""
    return bytes(stored + ending), not checksum or len(ending) == 4  # noqa: PLR2004


def _salvaged(stored: bytes) -> bytes:
    """Return what the whole blocks of a torn frame hold."""
    found = bytearray()
    with zstandard.ZstdDecompressor(max_window_size=LIMIT).stream_reader(io.BytesIO(stored)) as s:
        try:
            while piece := s.read(64 * 1024):
                found += piece
                if len(found) > LIMIT:
                    break
        except zstandard.ZstdError:
            pass
    return bytes(found)
