"""Real distributions for tests: folders of modules with their metadata, found and imported."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import attrs
import pytest

from heald import Deadlines, Discovery, Host, Layer, Row, open_host

HERE = Path(__file__).parent
PREAMBLE = """\
import asyncio, enum, os, sys
from pathlib import Path
from typing import Literal

import attrs
from heald import *
from loom import *
"""
PROMPT = Deadlines(start=5.0, stop=5.0, grace=1.0)


@attrs.frozen
class Ran:
    """What a process of the command line came to."""

    code: int
    out: str
    err: str


@attrs.define
class Site:
    """A folder on the path that distributions are installed into, and a home beside it."""

    path: Path
    home: Path

    def install(
        self,
        distribution: str,
        files: Mapping[str, str],
        *,
        plugins: Mapping[str, str] | None = None,
        **groups: Mapping[str, str],
    ) -> None:
        """Install a distribution; `groups` are entry points by the last word of their group."""
        for name, text in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text), "utf-8")
        info = self.path / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        header = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        (info / "METADATA").write_text(header, "utf-8")
        lines = []
        for group, points in ({"plugins": plugins or {}} | groups).items():
            lines += [f"[heald.{group}]", *(f"{name} = {value}" for name, value in points.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")
        importlib.invalidate_caches()

    def plugin(self, name: str, body: str = "", *, before: str = "", base: str = "") -> None:
        """Install a distribution `heald-NAME` of one plugin whose class body is given."""
        module, cls = f"heald_{name}", f"{name.title()}Plugin"
        source = f"{PREAMBLE}\n{dedent(before)}\n\nclass {cls}({base or 'Plugin[NoConfig]'}):\n"
        source += indent(dedent(body).strip() or "pass", "    ") + "\n"
        self.install(f"heald-{name}", {f"{module}.py": source}, plugins={name: f"{module}:{cls}"})

    @property
    def discovery(self) -> Discovery:
        """What is installed here and nowhere else, read anew."""
        return Discovery([str(self.path)])

    def host(
        self,
        *rows: str | Row,
        strict: bool = False,
        deadlines: Deadlines = PROMPT,
        patches: tuple[Path | Layer, ...] = (),
        env: Mapping[str, str] | None = None,
    ) -> AbstractAsyncContextManager[Host]:
        """Open a host; a row given as a word is named like its plugin. None: of the profile."""
        return open_host(
            home=self.home,
            rows=[row if isinstance(row, Row) else Row(row, row) for row in rows] or None,
            patches=patches,
            env=env or {},
            discovery=self.discovery,
            deadlines=deadlines,
            strict=strict,
        )

    def run(self, *args: str, env: Mapping[str, str] | None = None, code: str = "") -> Ran:
        """Run the command line, or Python code, in a process that has this site on its path."""
        command = [sys.executable, *(["-c", code] if code else ["-m", "heald"]), *args]
        done = subprocess.run(
            command,
            env=self.environ(env),
            capture_output=True,
            check=False,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, *args: str, ignoring: signal.Signals | None = None) -> subprocess.Popen[str]:
        """Start the command line and leave it running; it can be interrupted.

        Whoever runs the tests in the background has interrupts ignored, and a process inherits it.
        """
        heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        if ignoring is not None:
            heed += f"; signal.signal({int(ignoring)}, signal.SIG_IGN)"
        return subprocess.Popen(
            [sys.executable, "-c", f"{heed}; from heald.cli import main; main()", *args],
            env=self.environ(None),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def environ(self, env: Mapping[str, str] | None) -> dict[str, str]:
        """Return the environment of a process that is to see this site."""
        ours = {"HEALD_HOME": str(self.home), "PYTHONPATH": str(self.path)}
        return {**os.environ, **ours, **(env or {})}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Return a place to install to, with the vocabulary `loom`; its modules are forgotten after."""
    path = tmp_path / "site"
    path.mkdir()
    shutil.copy(HERE / "loom.py", path / "loom.py")
    monkeypatch.syspath_prepend(str(path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a rewritten module must be read again
    yield Site(path, tmp_path / "home")
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(path)):
            del sys.modules[name]


@pytest.fixture
def loom(site: Site) -> Any:  # noqa: ARG001 - it is there once the site is
    """Return the vocabulary that plugins of the site import."""
    return importlib.import_module("loom")


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file below the test's folder and return its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
        return path

    return write
