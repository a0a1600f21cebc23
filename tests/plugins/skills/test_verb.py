"""`heald skills` and `heald run /NAME` in a process of their own."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from heald.testing import CommandRunner


def write(root: Path, name: str, text: str) -> None:
    directory = root / name
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text(text)


@pytest.fixture
def project(tmp_path: Path, heald_home: Path) -> Path:
    """Return a directory with skills; the person has a preset `mine` with one more."""
    project = tmp_path / "project"
    mine = heald_home / "presets" / "mine"
    write(mine / "skills", "fold", "---\ndescription: Fold a letter.\n---\nTwice.\n")
    (mine / "preset.toml").write_text(
        'extends = "minimal"\n[[rows]]\nid = "my-skills"\nplugin = "skills"\n'
    )
    own = project / ".heald" / "skills"
    write(own, "fold", "---\ndescription: Fold otherwise.\n---\n")
    write(own, "model", "---\ndescription: Build a model.\n---\n")
    write(own, "torn", "torn")
    return project


@pytest.fixture
def heald(heald_cli: CommandRunner, project: Path) -> CommandRunner:
    """Return a function that runs `heald` in the project."""
    return partial(heald_cli, cwd=project)


def test_the_skills_of_a_directory_are_listed_with_what_keeps_some_away(
    heald: CommandRunner,
) -> None:
    lines = heald("skills", "--preset", "mine").stdout.splitlines()

    assert [line.split()[0] for line in lines] == ["skill", "fold", "model", "torn"]
    assert "Fold a letter." in lines[1]
    assert "/model is a command of row" in lines[2]
    assert "does not begin with front matter" in lines[3]


def test_json_has_every_key_and_the_hidden_ones_if_all_are_asked_for(
    heald: CommandRunner, project: Path
) -> None:
    shown = json.loads(heald("skills", "--preset", "mine", "--all", "--json").stdout)

    assert [(s["name"], s["root"], s["hidden"]) for s in shown] == [
        ("fold", "preset mine", False),
        ("fold", "project", True),
        ("model", "project", False),
        ("torn", "project", False),
    ]
    assert shown[1] == {
        "name": "fold",
        "description": "Fold otherwise.",
        "root": "project",
        "directory": str(project / ".heald" / "skills" / "fold"),
        "extra": {},
        "problem": None,
        "hidden": True,
        "command_of": None,
    }


def test_a_stored_session_is_asked_on_the_preset_and_in_the_directory_it_works_on(
    heald: CommandRunner, heald_cli: CommandRunner, tmp_path: Path
) -> None:
    ran = heald("run", "--preset", "mine", "--model", "scripted:echo", "--json", "hello")
    session = json.loads(ran.stdout)["session"]
    before = heald("sessions", "show", session, "--json").stdout

    skills = json.loads(heald_cli("skills", session[:8], "--json", cwd=tmp_path).stdout)
    commands = json.loads(heald_cli("commands", session[:8], "--json", cwd=tmp_path).stdout)

    assert [skill["name"] for skill in skills] == ["fold", "model", "torn"]
    assert {c["name"]: c["row"] for c in commands}["fold"] == "my-skills"
    assert "torn" not in {c["name"] for c in commands}
    assert {c["name"]: c["row"] for c in commands}["model"] != "my-skills"
    assert heald("sessions", "show", session, "--json").stdout == before


def test_a_preset_without_skills_says_so(heald: CommandRunner) -> None:
    assert heald("skills", "--preset", "minimal").stdout == "Preset minimal has no skills.\n"
    assert json.loads(heald("skills", "--preset", "minimal", "--json").stdout) == []


def test_a_directory_without_skills_says_how_to_make_one(
    heald_cli: CommandRunner, tmp_path: Path, heald_home: Path
) -> None:
    preset = heald_home / "presets" / "bare"
    preset.mkdir(parents=True)
    (preset / "preset.toml").write_text('[[rows]]\nid = "skills"\nplugin = "skills"\n')

    done = heald_cli("skills", "--preset", "bare", cwd=tmp_path)

    assert done.stdout == "There are no skills here; .heald/skills/NAME/SKILL.md makes one.\n"


def test_an_unknown_session_or_preset_is_told(heald: CommandRunner) -> None:
    assert "SESSION_NOT_FOUND" in heald("skills", "feed", code=1).stderr
    assert "PRESET_NOT_FOUND" in heald("skills", "--preset", "mien", code=1).stderr
