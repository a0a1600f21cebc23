from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heald_persistence.local import LocalPersistence

PROGRAM = Path(__file__).with_name("another_process.py")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def make_backend(root: Path) -> Callable[..., LocalPersistence]:
    def make(queue_bytes: int = 1024 * 1024, **config: Any) -> LocalPersistence:
        return LocalPersistence(
            root,
            queue_bytes,
            lambda: 1_700_000_000_000,
            logging.getLogger("heald_persistence"),
            **config,
        )

    return make


@pytest.fixture
def backend(make_backend: Callable[..., LocalPersistence]) -> LocalPersistence:
    return make_backend()


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start other processes that write sessions; they are ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str | Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", PROGRAM, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()
