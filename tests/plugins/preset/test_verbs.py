"""`heald presets`, as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

import heald_preset
from heald.testing import CommandRunner

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

    def heald(
        *args: str, stdin: IO[bytes] | int = subprocess.DEVNULL
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "heald", *args],
            cwd=project,
            env={**os.environ, "HEALD_HOME": str(heald_home), "COLUMNS": "400"},
            stdin=stdin,
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
        "shell (disabled)",
        '  plugin = "tools-shell"',
        "  disabled = true",
        "",
        "files",
        '  plugin = "tools-files"',
        '  config.tools = ["editor"]',
    ]


def test_show_says_which_file_wrote_each_field(heald: Heald, write: Write) -> None:
    mine = write("mine", 'extends = "minimal"\n[[patch]]\nrow = "shell"\ndisabled = true\n')
    assert heald_preset.__file__
    shipped = Path(heald_preset.__file__).parent / "shipped" / "minimal" / "preset.toml"

    lines = heald("presets", "show", "mine", "--origins").stdout.splitlines()
    (_, shell, _) = json.loads(heald("presets", "show", "mine", "--json").stdout)["rows"]

    assert f"shell (disabled)  [{shipped}]" in lines
    assert f"  disabled = true  [{mine}]" in lines
    assert f'  plugin = "tools-shell"  [{shipped}]' in lines
    assert f'  config.tools = ["editor"]  [{shipped}]' in lines
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


def test_origins_are_shown_through_several_levels(
    heald: Heald, write: Write, project: Path
) -> None:
    base = write(
        "base",
        '[[rows]]\nid = "one"\nplugin = "persona"\nconfig = { text = "a", title = "t" }\n'
        '[[rows]]\nid = "two"\nplugin = "tools-shell"\n',
    ).resolve()
    middle = write(
        "middle",
        'extends = "base"\n[[patch]]\nrow = "one"\nconfig = { text = "b" }\n',
        project / ".heald" / "presets",
    )
    top = write("top", 'extends = "middle"\n[[patch]]\nrow = "two"\ndisabled = true\n')

    done = heald("presets", "show", "top", "--origins")

    assert done.stdout.splitlines() == [
        "preset top: 2 rows",
        "",
        f"one  [{base}]",
        f'  plugin = "persona"  [{base}]',
        f'  config.text = "b"  [{middle}]',
        "",
        f"two (disabled)  [{base}]",
        f'  plugin = "tools-shell"  [{base}]',
        f"  disabled = true  [{top}]",
    ]


def test_a_check_says_that_a_preset_works(heald: Heald, write: Write) -> None:
    write("mine", 'extends = "minimal"')

    done, told = heald("presets", "check", "mine"), heald("presets", "check", "mine", "--json")

    assert (done.returncode, done.stdout) == (0, "preset 'mine': works\n")
    assert json.loads(told.stdout) == [{"id": "mine", "problem": None, "failed": []}]


def test_a_check_of_all_tells_every_fault_and_fails(heald: Heald, write: Write) -> None:
    write("mine", 'extends = "minimal"')
    bad = write("bad", '[[rows]]\nid = "a"\nplugin = "persna"')
    write("worse", '[[rows]]\nid = "agents"\nplugin = "tools-agents"')

    done, told = heald("presets", "check", "--all"), heald("presets", "check", "--all", "--json")

    assert (done.returncode, told.returncode) == (1, 1)
    assert "preset 'minimal': works" in done.stdout
    assert f"preset 'bad': {bad}: row a: plugin: no plugin 'persna'" in done.stdout
    assert "preset 'worse': " in done.stdout
    found = {entry["id"]: entry["problem"] for entry in json.loads(told.stdout)}
    assert found.keys() == {"bad", "mine", "minimal", "standard", "worse"}
    assert (found["mine"], found["minimal"]) == (None, None)
    assert "did you mean 'persona'?" in found["bad"]


def test_a_check_names_every_row_that_fails(
    heald_cli: CommandRunner, write: Write, failing: Path
) -> None:
    write("mine", '[[rows]]\nid = "a"\nplugin = "fails"\n[[rows]]\nid = "b"\nplugin = "fails"\n')
    env = {"PYTHONPATH": str(failing)}

    told = heald_cli("presets", "check", "mine", "--json", env=env, code=1)
    done = heald_cli("presets", "check", "mine", env=env, code=1)

    (entry,) = json.loads(told.stdout)
    assert entry["failed"] == [
        {
            "row": row,
            "plugin": "fails",
            "distribution": "failing",
            "stage": "start",
            "reason": "RuntimeError: it does",
            "because_of": [],
        }
        for row in "ab"
    ]
    for row in "ab":
        place = f"row {row} (plugin fails, distribution failing)"
        assert f"  {place} failed at start: RuntimeError: it does" in done.stdout


def test_a_check_wants_one_preset_or_all(heald: Heald) -> None:
    for words in ((), ("minimal", "--all")):
        done = heald("presets", "check", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert "name one preset, or say --all" in done.stderr
    gone = heald("presets", "check", "gone")
    assert (gone.returncode, gone.stdout) == (1, "")
    assert "PRESET_NOT_FOUND" in gone.stderr


def test_a_diff_shows_rows_and_fields_with_the_file_that_wrote_each(
    heald: Heald, write: Write
) -> None:
    a = write(
        "a",
        '[[rows]]\nid = "one"\nplugin = "persona"\nconfig = { text = "${env:A:-x}" }\n'
        '[[rows]]\nid = "shell"\nplugin = "tools-shell"\n',
    )
    b = write(
        "b",
        'extends = "a"\n[[rows]]\nid = "files"\nplugin = "tools-files"\n'
        '[[patch]]\nrow = "one"\nconfig = { text = "y" }\n'
        '[[patch]]\nrow = "shell"\ndisabled = true\n',
    )

    done, told = heald("presets", "diff", "a", "b"), heald("presets", "diff", "a", "b", "--json")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "one",
        f'  - config.text = "${{env:A:-x}}"  [{a}]',
        f'  + config.text = "y"  [{b}]',
        "",
        "shell",
        f"  + disabled = true  [{b}]",
        "",
        "files (added)",
        f'  + plugin = "tools-files"  [{b}]',
    ]
    assert json.loads(told.stdout)[0] == {
        "row": "one",
        "change": "changed",
        "fields": [
            {
                "field": "config.text",
                "old": "${env:A:-x}",
                "new": "y",
                "old_origin": str(a),
                "new_origin": str(b),
            }
        ],
    }


def test_a_diff_of_what_comes_to_the_same_says_so(heald: Heald, write: Write) -> None:
    write("mine", 'extends = "minimal"')

    done = heald("presets", "diff", "minimal", "mine")

    assert done.stdout == "minimal and mine come to the same rows\n"
    assert json.loads(heald("presets", "diff", "minimal", "mine", "--json").stdout) == []


def test_a_moved_row_is_told(heald: Heald, write: Write) -> None:
    rows = [f'[[rows]]\nid = "{p}"\nplugin = "tools-{p}"\n' for p in ("shell", "files")]
    write("a", "".join(rows))
    write("b", "".join(reversed(rows)))

    lines = heald("presets", "diff", "a", "b").stdout.splitlines()

    assert lines in (
        ["shell", "  - stands first", "  + stands after files"],
        ["files", "  - stands after shell", "  + stands first"],
    )


def test_a_preset_is_made_copied_used_and_removed(heald: Heald, heald_home: Path) -> None:
    made = heald("presets", "new", "mine", "--extends", "minimal")
    copied = heald("presets", "copy", "mine", "more", "--json")
    used = heald("presets", "use", "mine")
    listed = heald("presets", "list").stdout
    removed = heald("presets", "remove", "mine", "--yes")

    root = heald_home / "presets"
    assert made.stdout == f"{root / 'mine' / 'preset.toml'}\n"
    assert "heald presets check mine" in made.stderr
    assert json.loads(copied.stdout) == {"id": "more", "path": str(root / "more")}
    assert used.stdout == f"preset mine is the default now ({heald_home / 'heald.toml'})\n"
    assert "\nmine *" in listed
    assert removed.stdout.startswith(f"preset mine is now in {root / '.trash' / 'mine.'}")
    assert "it was the default, which is now standard" in removed.stderr
    assert (heald_home / "heald.toml").read_text().rstrip() == 'profile = "alone"'


def test_removing_asks_for_consent_where_it_can_and_wants_it_in_words_elsewhere(
    heald: Heald, write: Write
) -> None:
    file = write("mine", "")

    done = heald("presets", "remove", "mine")

    assert (done.returncode, done.stdout) == (2, "")
    assert "--yes" in done.stderr
    assert file.exists()


@pytest.mark.parametrize("answer", ["y", "n"])
def test_removing_does_what_a_person_answers(heald: Heald, write: Write, answer: str) -> None:
    file = write("mine", "")
    ours, theirs = os.openpty()
    with os.fdopen(ours, "wb") as typing, os.fdopen(theirs, "rb") as terminal:
        typing.write(f"{answer}\n".encode())
        typing.flush()
        done = heald("presets", "remove", "mine", stdin=terminal)

    assert "Remove preset mine? [y/N]" in done.stderr
    assert (done.returncode, file.exists()) == ((0, False) if answer == "y" else (1, True))


def test_removing_tells_which_presets_it_broke(heald: Heald, write: Write) -> None:
    write("mine", "")
    write("more", 'extends = "mine"')

    done = heald("presets", "remove", "mine", "--yes", "--json")

    assert json.loads(done.stdout).keys() == {"id", "kept", "default"}
    assert "presets that extend it are broken now: more" in done.stderr


def test_what_is_not_ones_own_cannot_be_removed(heald: Heald) -> None:
    done = heald("presets", "remove", "minimal", "--yes")

    assert done.returncode == 1
    assert "PRESET_READ_ONLY" in done.stderr


def test_a_default_that_another_layer_overrides_is_no_success(
    heald: Heald, tmp_path: Path, heald_home: Path
) -> None:
    patch = tmp_path / "patch.toml"
    patch.write_text('[[patch]]\nrow = "preset"\nconfig.merge = { default = "standard" }\n')

    done = heald("--patch", str(patch), "presets", "use", "minimal", "--json")

    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "id": "minimal",
        "file": str(heald_home / "heald.toml"),
        "default": "standard",
    }
    assert f"but {patch} comes after it: the default is standard" in done.stderr


def test_a_projects_preset_as_the_default_is_told_to_be_one(
    heald: Heald, write: Write, project: Path
) -> None:
    write("ours", "", project / ".heald" / "presets")

    done = heald("presets", "use", "ours")

    assert done.returncode == 0
    assert "ours is one of this project" in done.stderr


def test_a_default_that_names_nothing_is_told_with_the_list(heald: Heald, heald_home: Path) -> None:
    with (heald_home / "heald.toml").open("a") as file:
        file.write('[[patch]]\nrow = "preset"\nconfig = { default = "gone" }\n')

    done = heald("presets", "list")

    assert done.returncode == 0
    assert "the default is 'gone', which is not there" in done.stderr
