"""Hosts with the rows that projections need, and plugins made for one test."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from heald import Host, Plugin, Row
from heald.testing import HostFactory

Install = Callable[..., None]
OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install plugin classes, each as a distribution of its own: `install(name=cls)`."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def install(**classes: type[Plugin[Any]]) -> None:
        for name, cls in classes.items():
            module = ModuleType(f"heald_test_{name}")
            vars(module)["Made"] = cls
            monkeypatch.setitem(sys.modules, module.__name__, module)
            facts = site / f"heald_test_{name}-1.dist-info"
            facts.mkdir()
            (facts / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: heald-test-{name}\nVersion: 1\n"
            )
            (facts / "entry_points.txt").write_text(
                f"[heald.plugins]\n{name} = {module.__name__}:Made\n"
            )

    return install


@pytest.fixture
def open_rows(heald_host: HostFactory) -> OpenHost:
    """Open a host of the rows that projections need; more may stand before and after them."""

    def opened(*, first: tuple[str, ...] = (), last: tuple[str, ...] = ()) -> Any:
        names = (*first, "session", "projection", *last)
        return heald_host(rows=[Row(id=name, plugin=name) for name in names])

    return opened
