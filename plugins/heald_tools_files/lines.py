"""Lines of a file of any size: however long one is, only its beginning is held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

SNIFFED = 8_192
"""How many bytes decide whether a file is text."""
_PIECE = 65_536


class Line(NamedTuple):
    """One line, without its end."""

    kept: bytes
    """At most as many bytes as were asked for."""
    length: int
    """How many bytes the whole line has."""
    end: bytes
    """`\\n`, `\\r\\n`, or nothing after the last line of a file that ends without."""

    @property
    def is_whole(self) -> bool:
        """Whether all of it was kept."""
        return len(self.kept) == self.length


def lines(file: BinaryIO, longest: int, check: Callable[[], object]) -> Iterator[Line]:
    """Yield a file's lines, holding `longest` bytes of each; `check` may raise to stop it."""
    while piece := file.readline(longest + 2):
        check()
        kept, length, last = piece, len(piece), piece[-2:]
        while not piece.endswith(b"\n") and (piece := file.readline(_PIECE)):
            check()
            length += len(piece)
            last = (last + piece[-2:])[-2:]
        end = _end(last)
        length -= len(end)
        yield Line(kept[: min(longest, length)], length, end)


def _end(last: bytes) -> bytes:
    if last.endswith(b"\r\n"):
        return b"\r\n"
    return b"\n" if last.endswith(b"\n") else b""


def is_binary(head: bytes) -> bool:
    """Say whether a file that begins like this is not text: text has no zero byte."""
    return b"\0" in head[:SNIFFED]


def sniff(file: BinaryIO) -> bool:
    """Say whether an open file is binary, and go back to where it begins."""
    head = file.read(SNIFFED)
    file.seek(0)
    return is_binary(head)
