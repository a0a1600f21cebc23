"""A distribution whose plugin brings checks, for a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

ROW = '[[rows]]\nid = "{name}"\nplugin = "{name}"\n'


class InstallChecks(Protocol):
    """Installs a plugin `clinic`, or another name, and gives it a row."""

    def __call__(self, source: str, *, name: str = "clinic") -> None: ...


@pytest.fixture
def install_checks(
    tmp_path: Path, heald_home: Path, monkeypatch: pytest.MonkeyPatch
) -> InstallChecks:
    """Return a function that installs a module with `ClinicPlugin` as a distribution."""
    site = tmp_path / "site"
    monkeypatch.setenv("PYTHONPATH", str(site))

    def install(source: str, *, name: str = "clinic") -> None:
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-dist\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[heald.plugins]\n{name} = {name}:ClinicPlugin\n")
        (site / f"{name}.py").write_text(source)
        with (heald_home / "heald.toml").open("a") as file:
            file.write(ROW.format(name=name))

    return install
