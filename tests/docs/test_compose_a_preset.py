"""The presets of the page about them, written down as it shows them, do what it says."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from heald.testing import CommandRunner

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "compose-a-preset.md").read_text("utf-8")
BLOCK = re.compile(
    r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
FILES = dict(BLOCK.findall(PAGE))


@pytest.fixture(autouse=True)
def _written(heald_home: Path) -> None:
    """Write the page's files into the home."""
    for name, text in FILES.items():
        path = heald_home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def rows(heald_cli: CommandRunner, preset: str, **env: str) -> dict[str, dict[str, object]]:
    """Return the rows that a preset comes to, by id."""
    shown = json.loads(heald_cli("presets", "show", preset, "--json", env=env).stdout)
    return {row["id"]: row for row in shown["rows"]}


def test_every_file_of_the_page_is_written() -> None:
    assert [*FILES] == [
        "presets/reviewer/preset.toml",
        "presets/reviewer/skills/errors/SKILL.md",
        "presets/careful/preset.toml",
    ]


def test_each_preset_of_the_page_works(heald_cli: CommandRunner) -> None:
    for preset in ("reviewer", "careful"):
        assert heald_cli("presets", "check", preset).stdout == f"preset {preset!r}: works\n"


def test_the_new_file_works_before_it_is_edited(heald_cli: CommandRunner, heald_home: Path) -> None:
    (heald_home / "presets" / "reviewer").rename(heald_home / "presets" / "shown")

    made = heald_cli("presets", "new", "reviewer").stdout

    assert made == f"{heald_home / 'presets' / 'reviewer' / 'preset.toml'}\n"
    assert rows(heald_cli, "reviewer") == {}
    assert heald_cli("presets", "check", "reviewer").stdout == "preset 'reviewer': works\n"


def test_the_reviewer_has_its_tools_and_its_skill(heald_cli: CommandRunner) -> None:
    assert [*rows(heald_cli, "reviewer")] == ["persona", "files", "skills"]
    skills = json.loads(heald_cli("skills", "--preset", "reviewer", "--json").stdout)
    assert [skill["name"] for skill in skills] == ["errors"]


def test_the_careful_one_follows_standard_and_its_condition(heald_cli: CommandRunner) -> None:
    standard = rows(heald_cli, "standard")
    without = rows(heald_cli, "careful")
    allowed = rows(heald_cli, "careful", SHELL_ALLOWED="1")

    assert [*without] == [*standard]
    assert (without["shell"]["disabled"], allowed["shell"]["disabled"]) == (True, False)
    changes = json.loads(heald_cli("presets", "diff", "standard", "careful", "--json").stdout)
    assert {change["row"] for change in changes} == {"shell", "files"}


def test_using_and_removing_it_sets_the_default_and_takes_it_back(
    heald_cli: CommandRunner, heald_home: Path
) -> None:
    def default() -> str:
        listed = json.loads(heald_cli("presets", "list", "--json").stdout)
        (found,) = [preset["id"] for preset in listed if preset["default"]]
        return str(found)

    heald_cli("presets", "use", "careful")
    assert default() == "careful"
    heald_cli("presets", "remove", "careful", "--yes")
    assert default() == "standard"
    assert [*(heald_home / "presets" / ".trash").glob("careful.*/preset.toml")]


def test_a_projects_presets_are_checked_with_the_others(
    heald_cli: CommandRunner, tmp_path: Path
) -> None:
    broken = tmp_path / ".heald" / "presets" / "ours"
    broken.mkdir(parents=True)
    (broken / "preset.toml").write_text('extends = "standart"')

    done = heald_cli("presets", "check", "--all", cwd=tmp_path, code=1)

    assert "did you mean 'standard'?" in done.stdout


def test_what_the_page_takes_from_the_example_is_there() -> None:
    for target in re.findall(r"\{literalinclude\} (\S+)", PAGE):
        path = (ROOT / "docs" / "how-to" / target).resolve()
        if path.suffix == ".toml":
            assert tomllib.loads(path.read_text("utf-8"))
        else:
            assert "class WordCountPresetsPlugin" in path.read_text("utf-8")
