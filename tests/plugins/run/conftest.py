"""A directory to work in, and a model-free environment."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from heald.testing import CommandRunner


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what might configure a model."""
    for name in list(os.environ):
        if name.startswith("OPENAI_"):
            monkeypatch.delenv(name)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return an empty directory to work in."""
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


@pytest.fixture
def heald(heald_cli: CommandRunner, project: Path) -> CommandRunner:
    """Return a function that runs `heald` in the project directory."""
    return partial(heald_cli, cwd=project)
