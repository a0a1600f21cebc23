"""Plugins made for one test, for the suites of more than one package."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from heald import Plugin

Install = Callable[..., None]


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
