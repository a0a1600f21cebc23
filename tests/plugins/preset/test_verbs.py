"""`heald presets list` and `heald presets show`, as a person runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import heald_preset

Heald = Callable[..., subprocess.CompletedProcess[str]]
Write = Callable[..., Path]

ALONE = """
label = "Only presets"
[[rows]]
id = "preset"
plugin = "preset"
"""


@pytest.fixture
def heald(heald_home: Path, project: Path) -> Heald:
    """Return a function that runs the command line in the project's directory."""
    (heald_home / "profiles" / "alone").mkdir(parents=True)
    (heald_home / "profiles" / "alone" / "heald.toml").write_text(ALONE)
    (heald_home / "heald.toml").write_text('profile = "alone"\n')

    def heald(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "heald", *args],
            cwd=project,
            env={**os.environ, "HEALD_HOME": str(heald_home), "COLUMNS": "400"},
            capture_output=True,
            text=True,
            check=False,
        )

    return heald


def test_the_list_shows_whose_each_preset_is_and_marks_the_default_and_the_broken(
    heald: Heald, write: Write, project: Path
) -> None:
    write("mine", 'label = "My own"\nextends = "minimal"')
    write("bad", "label =")
    write("ours", "", project / ".heald" / "presets")

    done = heald("presets", "list")

    assert done.returncode == 0, done.stderr
    lines = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
    assert list(lines) == ["preset", "standard *", "minimal", "bad", "mine", "ours"]
    assert "not TOML" in lines["bad"]
    assert lines["mine"].split()[1:] == ["My", "own", "user", "-"]
    assert lines["ours"].split()[1:] == ["ours", "project", "-"]


def test_hidden_presets_are_listed_when_all_are_asked_for(heald: Heald, write: Write) -> None:
    write("minimal", 'order = 5\nlabel = "Mine"')

    some = json.loads(heald("presets", "list", "--json").stdout)
    every = json.loads(heald("presets", "list", "--all", "--json").stdout)

    assert [(p["id"], p["default"]) for p in some] == [("standard", True), ("minimal", False)]
    assert [(p["id"], p["root"], p["shadowed"]) for p in every] == [
        ("minimal", "user", True),
        ("standard", "shipped", False),
        ("minimal", "shipped", False),
    ]


def test_an_entry_of_the_json_list_has_every_field(heald: Heald, write: Write) -> None:
    file = write("mine", 'extends = "minimul"\norder = 1\ndescription = "What I like"')

    first, *_ = json.loads(heald("presets", "list", "--json").stdout)

    assert first == {
        "id": "mine",
        "label": "mine",
        "description": "What I like",
        "order": 1,
        "root": "user",
        "path": str(file.parent),
        "extends": "minimul",
        "default": False,
        "shadowed": False,
        "problem": f"{file}: extends: no preset 'minimul'; did you mean 'minimal'?",
    }


def test_a_root_that_cannot_be_read_fails_the_list(heald: Heald, heald_home: Path) -> None:
    (heald_home / "presets").write_text("")

    done = heald("presets", "list")

    assert done.returncode == 1
    assert "PRESET_ROOT_UNREADABLE" in done.stderr
    assert done.stdout == ""


def test_show_prints_what_a_preset_comes_to(heald: Heald, write: Write) -> None:
    write(
        "mine",
        'extends = "minimal"\n[[patch]]\nrow = "shell"\ndisabled = true\n'
        '[[patch]]\nrow = "persona"\nconfig = { text = "${env:PERSONA:-Hello}" }',
    )

    done = heald("presets", "show", "mine")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "preset mine: 3 rows",
        "",
        "persona",
        '  plugin = "persona"',
        '  config.text = "${env:PERSONA:-Hello}"',
        "",
        "files",
        '  plugin = "tools-files"',
        '  config.tools = ["read", "write", "edit"]',
        "",
        "shell (disabled)",
        '  plugin = "tools-shell"',
        "  disabled = true",
    ]


def test_show_says_which_file_wrote_each_field(heald: Heald, write: Write) -> None:
    mine = write("mine", 'extends = "minimal"\n[[patch]]\nrow = "shell"\ndisabled = true\n')
    assert heald_preset.__file__
    shipped = Path(heald_preset.__file__).parent / "shipped" / "minimal" / "preset.toml"

    lines = heald("presets", "show", "mine", "--origins").stdout.splitlines()
    (*_, shell) = json.loads(heald("presets", "show", "mine", "--json").stdout)["rows"]

    assert f"shell (disabled)  [{shipped}]" in lines
    assert f"  disabled = true  [{mine}]" in lines
    assert f'  plugin = "tools-shell"  [{shipped}]' in lines
    assert f'  config.tools = ["read", "write", "edit"]  [{shipped}]' in lines
    assert shell == {
        "id": "shell",
        "plugin": "tools-shell",
        "disabled": True,
        "config": {},
        "layer": str(shipped),
        "origins": {"plugin": str(shipped), "config": str(shipped), "disabled": str(mine)},
    }


def test_showing_what_is_not_there_or_broken_says_so(heald: Heald, write: Write) -> None:
    write("bad", "label =")

    unknown, broken = heald("presets", "show", "minimul"), heald("presets", "show", "bad")

    assert (unknown.returncode, broken.returncode) == (1, 1)
    assert "PRESET_NOT_FOUND" in unknown.stderr
    assert "did you mean 'minimal'? (there are: bad, minimal, standard)" in unknown.stderr
    assert "PRESET_INVALID" in broken.stderr
    assert "not TOML" in broken.stderr
