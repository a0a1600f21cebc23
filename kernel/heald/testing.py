"""A pytest plugin for plugin authors: real hosts and real commands in a temporary home.

Installed with Heald; a test asks for the fixture `heald_host` or `heald_cli`.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from heald import Deadlines, Discovery, Host, Layer, Row


class HostFactory(Protocol):
    """What the fixture `heald_host` is: `open_host` with a home of the test's own."""

    def __call__(
        self,
        *,
        home: Path | None = None,
        profile: str | None = None,
        patches: Sequence[Path | Layer] = (),
        rows: Sequence[Row] | None = None,
        env: Mapping[str, str] | None = None,
        discovery: Discovery | None = None,
        deadlines: Deadlines | None = None,
        strict: bool = True,
    ) -> AbstractAsyncContextManager[Host]:
        """Open a host for the length of an `async with` block; a failed row raises."""
        ...


@pytest.fixture
def heald_home(tmp_path: Path) -> Path:
    """Return an empty directory that serves as `HEALD_HOME`."""
    home = tmp_path / "heald-home"
    home.mkdir()
    return home


@pytest.fixture
def heald_host(heald_home: Path) -> HostFactory:
    """Make real hosts that read no environment, each for one `async with` block."""
    from heald import open_host  # noqa: PLC0415 - a test run that needs no host pays nothing

    def factory(**options: Any) -> AbstractAsyncContextManager[Host]:
        defaults: dict[str, Any] = {"home": heald_home, "env": {}, "strict": True}
        given = {name: value for name, value in options.items() if value is not None}
        return open_host(**defaults | given)  # None must not mean the person's own home

    return factory


class CommandRunner(Protocol):
    """What the fixture `heald_cli` is: the command line in a process of its own."""

    def __call__(
        self,
        *words: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        code: int = 0,
    ) -> subprocess.CompletedProcess[str]:
        """Run `heald` with these words, and fail the test unless it exits with `code`.

        `env` is added to the environment.
        """
        ...


@pytest.fixture
def heald_cli(heald_home: Path) -> CommandRunner:
    """Return a function that runs `heald` with a home of the test's own and no input."""

    def run(
        *words: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        code: int = 0,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(  # noqa: S603 - the words are the test's own
            [sys.executable, "-m", "heald", *words],
            cwd=cwd,
            env=os.environ | {"HEALD_HOME": str(heald_home)} | dict(env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != code:
            line = shlex.join(["heald", *words])
            pytest.fail(f"{line} exited with {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    return run
