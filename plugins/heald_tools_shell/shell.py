"""One shell process, and how commands are given to it.

The shell reads commands from one pipe, what it runs writes to another, and a third, which nothing
that it runs can see, says when a command has ended. So output can never be taken for an end, and a
process left behind with its output open keeps nobody waiting.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import shlex
import struct
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from heald_tools_shell.output import Output
from heald_tools_shell.processes import kill_session

_CHUNK = 65_536
_QUIET = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
"""So that no program waits for a person."""
_BEGIN = b"exec 7>&2 2>&1\n"
"""The shell starts with its third pipe as standard error: move it, and join error to output."""


@attrs.frozen
class Ended:
    """How a command ended."""

    status: int
    alive: bool
    """Whether the shell is there for the next one."""


class Shell:
    """A running shell, the leader of a session of its own. Started with `Shell.start`."""

    def __init__(
        self, process: asyncio.subprocess.Process, commands: int, output: int, ends: int, limit: int
    ) -> None:
        self._process = process
        self._commands, self._outputs, self._ends = commands, output, ends
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._output = Output(limit)
        self._said = b""
        self._nonce = b""
        self._status: asyncio.Future[int] | None = None
        self._writing: asyncio.Future[None] | None = None
        self._gone = self._loop.create_task(self._end())
        self._closed = False
        for descriptor, reader in ((output, self._read_output), (ends, self._read_ends)):
            os.set_blocking(descriptor, False)
            self._loop.add_reader(descriptor, reader)

    @classmethod
    async def start(cls, program: str, cwd: Path, limit: int) -> Shell:
        """Start a shell in a directory; raises `OSError`."""
        pipes = [os.pipe() for _ in range(3)]
        (commands_in, commands), (output, output_in), (ends, ends_in) = pipes
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                cwd=cwd,
                env={**os.environ, **_QUIET},
                stdin=commands_in,
                stdout=output_in,
                stderr=ends_in,
                start_new_session=True,
            )
        except BaseException:
            for descriptor in (commands, output, ends):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (commands_in, output_in, ends_in):
                os.close(descriptor)
        os.write(commands, _BEGIN)  # an empty pipe has room for it
        return cls(process, commands, output, ends, limit)

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its session."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """How the shell ended, or None while it runs."""
        return self._process.returncode

    async def run(self, command: str) -> Ended:
        """Run a command and wait for its end; what it wrote is taken with `take_output`."""
        self._nonce = secrets.token_hex(16).encode()
        self._status = self._loop.create_future()
        # `command` keeps a plain sh alive when eval finds a syntax error.
        await self._give(
            b"{ command eval %s\n} </dev/null 7>&-\nprintf '%%s %%s\\n' %s \"$?\" >&7\n"
            % (shlex.quote(command).encode(), self._nonce)
        )
        first: set[asyncio.Future[Any]] = {self._status, self._gone}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        self._read_ends()
        self._drain()
        if self._status.done():
            return Ended(self._status.result(), alive=True)
        return Ended(await self._gone, alive=False)

    def take_output(self) -> str:
        """Return what was written since the last time, by processes left behind too."""
        taken, self._output = self._output, Output(self._limit)
        return taken.text()

    async def close(self) -> None:
        """Kill the shell and everything it started. Once is enough."""
        if self._closed:
            return
        if self.status is None:
            await asyncio.to_thread(kill_session, self.pid)
        await asyncio.shield(self._gone)
        if self._writing is not None:  # it ends with the shell; its pipe may not close before
            await asyncio.wait({self._writing})
        self._let_go()

    async def _end(self) -> int:
        """Wait until the shell is gone, and kill what it left behind while its session is known."""
        status = await self._process.wait()
        await asyncio.to_thread(kill_session, self.pid)
        return status

    def _let_go(self) -> None:
        if self._closed:
            return
        self._drain()
        self._closed = True
        for descriptor in (self._outputs, self._ends):
            self._loop.remove_reader(descriptor)
        for descriptor in (self._commands, self._outputs, self._ends):
            os.close(descriptor)

    async def _give(self, text: bytes) -> None:
        self._writing = asyncio.ensure_future(asyncio.to_thread(_write_all, self._commands, text))
        await asyncio.shield(self._writing)

    def _read_output(self) -> None:
        if not self._feed(_CHUNK):
            self._loop.remove_reader(self._outputs)

    def _feed(self, size: int) -> int:
        try:
            data = os.read(self._outputs, size)
        except BlockingIOError:
            return 1
        self._output.feed(data)
        return len(data)

    def _drain(self) -> None:
        """Take what is in the pipe now, and no more: processes left behind may never be done."""
        if self._closed:
            return
        waiting = fcntl.ioctl(self._outputs, termios.FIONREAD, struct.pack("i", 0))
        (left,) = struct.unpack("i", waiting)
        while left > 0 and (got := self._feed(left)):
            left -= got

    def _read_ends(self) -> None:
        if self._closed:
            return
        try:
            data = os.read(self._ends, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._ends)
        *lines, self._said = (self._said + data).split(b"\n")
        for line in lines:
            nonce, _, status = line.partition(b" ")
            if self._status and not self._status.done() and nonce == self._nonce:
                self._status.set_result(int(status))


def _write_all(descriptor: int, data: bytes) -> None:
    with suppress(BrokenPipeError):  # the shell is gone, as whoever waits for it finds out
        while data:
            data = data[os.write(descriptor, data) :]
