"""`heald commands` in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heald.testing import CommandRunner


@pytest.fixture
def project(tmp_path: Path, heald_home: Path) -> Path:
    """Return a directory with two skills; the person's preset `mine` has skills."""
    mine = heald_home / "presets" / "mine"
    mine.mkdir(parents=True)
    (mine / "preset.toml").write_text('[[rows]]\nid = "my-skills"\nplugin = "skills"\n')
    for name in ("fold", "model"):
        directory = tmp_path / "project" / ".heald" / "skills" / name
        directory.mkdir(parents=True)
        (directory / "SKILL.md").write_text(f"---\ndescription: The skill {name}.\n---\n")
    return tmp_path / "project"


def test_commands_are_listed_with_the_row_and_the_plugin_that_bring_them(
    heald_cli: CommandRunner, project: Path
) -> None:
    lines = heald_cli("commands", "--preset", "mine", cwd=project).stdout.splitlines()

    assert lines[0].split() == ["command", "description", "row", "plugin"]
    cells = {line.split()[0]: line.split()[-2:] for line in lines[1:]}
    assert cells["/fold"] == ["my-skills", "skills"]
    assert cells["/model"] == ["agent", "agent"]


def test_all_shows_what_has_a_name_that_another_one_has(
    heald_cli: CommandRunner, project: Path
) -> None:
    table = heald_cli("commands", "--preset", "mine", "--all", cwd=project).stdout
    shown = heald_cli("commands", "--preset", "mine", "--all", "--json", cwd=project).stdout

    assert "hidden by row agent" in table
    hidden = [each for each in json.loads(shown) if each["hidden_by"]]
    assert hidden == [
        {
            "name": "model",
            "description": "The skill model.",
            "row": "my-skills",
            "plugin": "skills",
            "hidden_by": "agent",
        }
    ]


def test_a_host_without_the_directory_of_commands_says_which_plugin_has_it(
    heald_cli: CommandRunner, heald_home: Path, tmp_path: Path
) -> None:
    (heald_home / "heald.toml").write_text('[[patch]]\nrow = "commands"\ndisabled = true\n')

    done = heald_cli("commands", cwd=tmp_path, code=1)

    assert "SERVICE_ABSENT" in done.stderr
    assert "commands" in done.stderr
