"""The tutorial's files, written down as it shows them, do what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-plugin.md"
BLOCK = re.compile(
    r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Write the page's files, and what an installer would write beside them."""
    for name, text in BLOCK.findall(PAGE.read_text("utf-8")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    metadata = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["project"]
    info = tmp_path / f"heald_shout-{metadata['version']}.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {metadata['name']}\nVersion: {metadata['version']}\n"
    )
    (points,) = metadata["entry-points"].items()
    lines = [f"[{points[0]}]", *(f"{name} = {value}" for name, value in points[1].items())]
    info.joinpath("entry_points.txt").write_text("\n".join(lines))
    return tmp_path


def run(project: Path, *command: str) -> str:
    env = os.environ | {"PYTHONPATH": str(project), "HEALD_HOME": str(project)}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_plugin_of_the_tutorial_is_listed(project: Path) -> None:
    assert "heald-shout 1.0" in run(project, "heald", "plugins", "list")


def test_the_test_of_the_tutorial_passes(project: Path) -> None:
    assert "1 passed" in run(project, "pytest", "-p", "no:cacheprovider")


def test_the_preset_of_the_tutorial_shows_its_row_and_where_it_is_written(project: Path) -> None:
    shown = run(project, "heald", "presets", "show", "loud", "--origins")
    assert "shout" in shown
    assert str(project / "presets" / "loud" / "preset.toml") in shown


def test_a_misspelt_field_is_told_with_the_name_that_was_meant(project: Path) -> None:
    preset = project / "presets" / "loud" / "preset.toml"
    preset.write_text(preset.read_text("utf-8").replace("marks =", "mark ="), "utf-8")
    listed = run(project, "heald", "presets", "list")
    assert "loud" in listed
    assert "did you mean 'marks'?" in listed
