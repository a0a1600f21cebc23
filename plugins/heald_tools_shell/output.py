"""Output of unknown length, kept as a head and a tail."""

from __future__ import annotations

from codecs import getincrementaldecoder


class Output:
    """Takes bytes and keeps at most `limit` characters: the first half and the last."""

    def __init__(self, limit: int) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._half = max(1, limit // 2)
        self._head = ""
        self._tail = ""
        self._dropped = 0

    def feed(self, data: bytes, *, last: bool = False) -> None:
        """Take the next bytes; what is not UTF-8 is replaced."""
        text = self._decoder.decode(data, last)
        room = self._half - len(self._head)
        self._head += text[:room]
        self._tail += text[room:]
        if (over := len(self._tail) - self._half) > 0:
            self._dropped += over
            self._tail = self._tail[over:]

    def text(self) -> str:
        """Return what was kept, saying in its middle how much was not."""
        self.feed(b"", last=True)
        if not self._dropped:
            return self._head + self._tail
        return f"{self._head}\n[... {self._dropped:,} characters are left out ...]\n{self._tail}"
