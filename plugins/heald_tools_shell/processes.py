"""The processes of one session, as the system counts them: a shell and all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

_ROUNDS = 50
_PAUSE = 0.01
_PROC = Path("/proc")


def kill_session(leader: int) -> None:
    """Kill a session's leader and every process in its session, in whatever process group.

    A program may put itself in a group of its own (`timeout` does), so the group alone is not
    enough. New ones can start while this looks, so it looks again until there is none. What made a
    session of its own, as a daemon does, is nobody's child any more and goes on.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for _ in range(_ROUNDS):
        members = session_members(leader)
        if not members:
            return
        for pid in members:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)


def session_members(leader: int) -> list[int]:
    """Return the processes of a session that still run."""
    return [pid for pid in _running() if _session_of(pid) == leader]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _running() -> list[int]:
    """Return every process that is not just waiting to be taken leave of."""
    if (_PROC / "self/stat").exists():
        names = [entry.name for entry in _PROC.iterdir() if entry.name.isdigit()]
        return [int(name) for name in names if not _is_dead(name)]
    listed = subprocess.run(
        ["/bin/ps", "-A", "-o", "pid=,stat="], capture_output=True, text=True, check=False
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [int(pid) for pid, state in rows if not state.startswith("Z")]


def _is_dead(pid: str) -> bool:
    try:
        stat = (_PROC / pid / "stat").read_text("utf-8", "replace")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"
