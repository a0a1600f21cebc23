"""Ctrl-C while a host lives: the first press ends what runs, and further ones lead to a way out."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import suppress
from types import FrameType
from typing import Any, Self

import click

from heald.errors import Cancelled, describe

PATIENCE = 3
"""The further press at which the process stops at once, whatever it was doing."""
INTERRUPTED = 128 + signal.SIGINT
_FIRST_PRESS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(click.Abort):
    """The process was asked to end, and everything that ran has ended."""

    def __init__(self, signum: int) -> None:
        super().__init__()
        self.exit_code = 128 + signum


class Interrupts:
    """Hears of interrupts inside its block, and raises `Interrupted` at the end if there was one.

    The handlers are plain ones, not the event loop's: those would wait for code that blocks the
    loop, and nothing could stop it. A signal that whoever started us has ignored stays ignored.
    """

    def __init__(self) -> None:
        self._signal: int | None = None
        self._further = 0
        self._task: asyncio.Task[Any] | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # no other may have handlers
            for signum in _FIRST_PRESS:
                if signal.getsignal(signum) in (signal.SIG_DFL, signal.default_int_handler):
                    self._before[signum] = signal.signal(signum, self._heard)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        if self._signal is None:
            return
        expected = (Cancelled, click.exceptions.Exit, BrokenPipeError)
        if isinstance(error, Exception) and not isinstance(error, expected):
            _tell(f"failed while ending: {describe(error)}")
        raise Interrupted(self._signal) from error

    def cancel_with(self, task: asyncio.Task[Any] | None) -> None:
        """Cancel `task` at the first press, at once if that has been."""
        self._task = task
        if self._signal is not None and task is not None:
            task.cancel()

    def _heard(self, signum: int, _: FrameType | None) -> None:
        if self._signal is None:
            self._signal = signum
            if self._task is not None:
                # The loop may be asleep, and only this wakes it.
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        elif signum == signal.SIGINT:
            self._pressed_again()

    def _pressed_again(self) -> None:
        self._further += 1
        left = PATIENCE - self._further
        if left <= 0:
            _tell("stopped at once")
            os._exit(INTERRUPTED)
        times = "once more" if left == 1 else f"{left} more times"
        _tell(f"still ending what was running; press Ctrl-C {times} to stop at once")


def _tell(text: str) -> None:
    """Write a line past Python's buffer, which the code that was interrupted may be writing to."""
    with suppress(OSError):  # nobody may be there to read it
        os.write(2, f"heald: {text}\n".encode())
