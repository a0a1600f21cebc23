"""One agent's shell: started when it is needed, and again after it ended."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import attrs

from heald import CancelToken
from heald_agent import ToolError
from heald_tools_shell.shell import Ended, Shell

_ANEW = "the next call starts a new one"


@attrs.define(eq=False)
class AgentShell:
    """Runs one agent's commands one after the other in a shell that stays.

    The environment and the directory that a command leaves are those of the next one.
    """

    program: str
    limit: int
    """Characters of a command's output that are kept."""
    _shell: Shell | None = None
    _closing: asyncio.Future[None] | None = None
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock)

    @property
    def pid(self) -> int | None:
        """The process id of the shell, if it runs."""
        return self._shell.pid if self._shell is not None else None

    async def run(self, command: str, cwd: Path, seconds: float, cancel: CancelToken) -> str:
        """Run a command, and return what it wrote and its status.

        Raises `ToolError` if it takes longer than `seconds` or is no longer wanted: the shell and
        everything it started was killed then.
        """
        async with self._turn:
            cancel.check()
            before = await self._lost()
            shell = self._shell = self._shell or await self._start(cwd)
            ended = await self._ended(shell, command, seconds, cancel)
            output = shell.take_output()
            if ended is None:
                raise ToolError(_report(output, before, _killed(seconds, cancel)))
            if not ended.alive:
                await self.close()
            return _report(output, before, _outcome(ended))

    async def close(self) -> None:
        """Kill the shell and all it started, even if whoever waits for that is cancelled."""
        shell, self._shell = self._shell, None
        if shell is not None:
            self._closing = asyncio.ensure_future(shell.close())
        if self._closing is not None:
            await asyncio.shield(self._closing)

    async def _ended(
        self, shell: Shell, command: str, seconds: float, cancel: CancelToken
    ) -> Ended | None:
        """Run a command to its end; None if it had to be killed."""
        try:
            ended = await _within(shell.run(command), seconds, cancel)
            if ended is None:
                await self.close()
        except asyncio.CancelledError:
            await self.close()
            # Whoever cancelled the token waits for the report of what was written so far.
            if not cancel.cancelled:
                raise
            return None
        return ended

    async def _lost(self) -> str:
        """Let go of a shell that ended since the last call, and say so."""
        if self._shell is None or self._shell.status is None:
            return ""
        status = self._shell.status
        await self.close()
        return f"the shell had ended ({_status(status)}); this is a new one"

    async def _start(self, cwd: Path) -> Shell:
        try:
            return await Shell.start(self.program, cwd, self.limit)
        except OSError as error:
            raise ToolError(f"no shell could be started in {cwd}: {error.strerror}") from error


def _killed(seconds: float, cancel: CancelToken) -> str:
    why = f"cancelled ({cancel.cause})" if cancel.cancelled else f"timed out after {seconds:g} s"
    return f"{why}: the shell and everything it started was killed; {_ANEW}"


def _outcome(ended: Ended) -> str:
    if ended.alive:
        return _status(ended.status)
    return f"the shell ended ({_status(ended.status)}) and its environment is lost; {_ANEW}"


def _status(status: int) -> str:
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"


def _report(output: str, before: str, after: str) -> str:
    notes = [f"[{before}]"] if before else []
    written = [output.removesuffix("\n")] if output else []
    return "\n".join([*notes, *written, f"[{after}]"])


async def _within(
    run: Coroutine[Any, Any, Ended], seconds: float, cancel: CancelToken
) -> Ended | None:
    """Wait for the end of a command; None if it takes too long or is no longer wanted."""
    task = asyncio.ensure_future(run)
    try:
        with cancel.as_future() as unwanted:
            first: set[asyncio.Future[Any]] = {task, unwanted}
            await asyncio.wait(first, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()
