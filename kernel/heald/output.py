"""Standard output that says so when it cannot be written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from heald.errors import OutputFailed, describe


class Output:
    """A text stream whose writing raises `OutputFailed`, or `BrokenPipeError` as ever."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._failure: Exception | None = None
        """Raised again by whatever follows, since click tries a stream and hides what it raises."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text, which may stay in the buffer."""
        with self._telling():
            return self._stream.write(text)

    def flush(self) -> None:
        """Write what is in the buffer."""
        with self._telling():
            self._stream.flush()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except OSError as error:
            # What is in the buffer is flushed once more when Python ends, and must go somewhere.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            gone = isinstance(error, BrokenPipeError)
            self._failure = error if gone else OutputFailed(error.strerror or describe(error))
            raise self._failure from None
