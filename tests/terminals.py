"""Runs the program as a person at a terminal does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pexpect


def at_a_terminal(home: Path, *words: str, **env: str) -> pexpect.spawn[str]:
    """Start heald in a terminal of 24 lines of 80 characters, which has colours unless told not."""
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return pexpect.spawn(
        sys.executable,
        ["-m", "heald", "--home", str(home), *words],
        env={**environment, "TERM": "xterm", **env},
        encoding="utf-8",
        timeout=60,
        echo=False,
    )


def shown(running: pexpect.spawn[str]) -> str:
    """Return everything that a program shows on its terminal until it ends well."""
    text = running.read()
    running.close()
    assert (running.exitstatus, running.signalstatus) == (0, None), text
    return text
