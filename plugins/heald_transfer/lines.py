"""The JSON lines in a file of frames, and whether the file ends in a torn one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from heald_transfer.arrivals import Unfit
from heald_transfer.frames import BadFrame, frames


class Lines:
    """The lines of one file; every frame holds whole lines, but for a torn one."""

    def __init__(self, file: BinaryIO) -> None:
        self._lines = self._read(file)
        self.torn = False
        """Whether the file ended in the middle of a frame, known once its lines are used up."""

    def __iter__(self) -> Iterator[bytes]:
        """Go on where reading stopped."""
        return self._lines

    def next(self) -> bytes | None:
        """Return the next line, or None after the last. Raises `Unfit`."""
        return next(self._lines, None)

    def _read(self, file: BinaryIO) -> Iterator[bytes]:
        try:
            for frame in frames(file):
                self.torn = frame.torn
                yield from _lines_in(frame.content, whole=not frame.torn)
        except BadFrame as error:
            raise Unfit(str(error)) from error


def _lines_in(content: bytes, *, whole: bool) -> Iterator[bytes]:
    start = 0
    while (end := content.find(b"\n", start)) >= 0:
        if end > start:
            yield content[start:end]
        start = end + 1
    if whole and start < len(content):
        yield content[start:]
