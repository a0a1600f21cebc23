"""`heald demo`: the survey of a real directory, in a real process."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import asdict

from heald.testing import CommandRunner
from heald_run.facts import parse_measured, sum_up
from heald_run.report import report


def printed(done: subprocess.CompletedProcess[str]) -> Any:
    """Return what was printed as JSON."""
    return json.loads(done.stdout)


def state_of(directory: Path) -> dict[str, tuple[int, int, str]]:
    """Return mode, modification time and content of everything below a directory."""
    return {
        str(path.relative_to(directory)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(directory.rglob("*"))
    }


@pytest.fixture
def sources(project: Path) -> Path:
    """Fill the project with files whose numbers are known."""
    (project / "README.md").write_text("# Looms\n\nAbout weaving.\n")
    (project / "src").mkdir()
    (project / "src" / "loom.py").write_text("import weft\n# TODO: count the threads\nx = 1\n" * 4)
    (project / "src" / "odd name's.py").write_text("y = 2\n# FIXME no line end")
    (project / "picture.bin").write_bytes(bytes(range(256)) * 40)
    (project / "empty.txt").touch()
    return project


@pytest.mark.usefixtures("sources")
def test_the_report_tells_true_facts_about_the_directory(heald: CommandRunner) -> None:
    told = heald("demo").stdout
    assert "5 files, 17 lines of text" in told
    assert "Python" in told
    assert "2 files         14 lines" in told
    assert "10,240 bytes  picture.bin" in told
    assert "TODO, FIXME or XXX: 5" in told
    assert "src/odd name's.py:2:# FIXME no line end" in told
    assert "# Looms" in told


def test_the_directory_is_left_as_it_was(heald: CommandRunner, sources: Path) -> None:
    before = state_of(sources)
    heald("demo")
    assert state_of(sources) == before


@pytest.mark.usefixtures("sources")
def test_the_json_is_one_object_with_one_one_shot_and_two_continuable_children(
    heald: CommandRunner,
) -> None:
    result = printed(heald("demo", "--json"))
    assert {"session", "turns", "tools", "children"} <= set(result)
    assert result["outcome"] == "completed"
    assert result["turns"] == 1
    assert result["tools"]["subagent"] == 3
    children = {child["label"]: child for child in result["children"]}
    assert {label: child["mode"] for label, child in children.items()} == {
        "measure": "one-shot",
        "marks": "continuable",
        "reader": "continuable",
    }
    assert {child["activity"] for child in children.values()} == {"inactive"}


@pytest.mark.usefixtures("sources")
def test_the_commands_that_the_report_ends_with_work(heald: CommandRunner) -> None:
    session = printed(heald("demo", "--json"))["session"]
    assert "Survey this directory" in heald("sessions", "show", session).stdout
    rows = printed(heald("agents", "list", session, "--json"))
    assert len(rows) == 3
    again = printed(heald("run", "--session", session, "Once more.", "--json"))
    assert again["session"] == session
    assert again["turns"] == 2


@pytest.mark.usefixtures("sources")
def test_progress_is_told_on_standard_error_and_the_report_on_standard_output(
    heald: CommandRunner,
) -> None:
    done = heald("demo")
    assert "marks: started" in done.stderr
    assert "agent: glob **/*" in done.stderr
    assert "started" not in done.stdout


@pytest.mark.usefixtures("project")
def test_an_empty_directory_is_surveyed_and_said_to_have_no_files(heald: CommandRunner) -> None:
    result = printed(heald("demo", "--json"))
    assert result["outcome"] == "completed"
    assert "has no files" in result["text"]
    assert len(result["children"]) == 3


def test_a_very_large_directory_is_surveyed_in_part_and_the_report_says_so(
    heald: CommandRunner, project: Path
) -> None:
    for number in range(1_200):
        (project / f"file-{number:04}.py").write_text("pass\n")
    told = heald("demo").stdout
    assert "1,000 files, 1,000 lines of text" in told
    assert "only the first 1,000 files were looked at; there are more" in told


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser can read every file")
def test_files_that_cannot_be_read_are_counted(heald: CommandRunner, sources: Path) -> None:
    (sources / "empty.txt").chmod(0)
    assert "1 file could not be read" in heald("demo").stdout


def test_files_that_vanish_or_lead_nowhere_do_not_stop_it(
    heald: CommandRunner, sources: Path
) -> None:
    (sources / "dangling").symlink_to("nowhere")
    (sources / "loop").symlink_to(sources)
    os.mkfifo(sources / "pipe")
    assert "5 files" in heald("demo").stdout


def test_another_directory_can_be_named(
    heald: CommandRunner, sources: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(sources, elsewhere)
    heald("demo", "../elsewhere")
    sessions = printed(heald("sessions", "list", "--json"))
    assert [session["cwd"] for session in sessions] == [str(elsewhere)]


def test_odd_names_and_lines_are_told_as_they_are(heald: CommandRunner, project: Path) -> None:
    (project / "[a]").write_text("one\n")
    (project / "facts: {").write_text("two\n")
    (project / "fed.txt").write_text("a = 1 # TODO\x0cmore\n")
    (project / "new\nline.py").write_text("pass\n")
    (project / "link").symlink_to("/etc/passwd")
    told = heald("demo").stdout
    assert "3 files, 3 lines of text" in told
    assert "(1 file with names that are not text were left out)" in told
    assert "(1 symbolic link left alone)" in told
    assert "TODO, FIXME or XXX: 1\n" in told
    assert "root:" not in told


def test_the_subagents_of_the_report_are_named_without_a_status(
    heald: CommandRunner, project: Path
) -> None:
    (project / "a.txt").write_text("a\n")
    done = heald("demo", "--json")
    children = {child["label"]: child["id"] for child in printed(done)["children"]}
    assert f"  marks ({children['marks']})" in printed(done)["text"]
    assert "running" not in printed(done)["text"]


def test_a_directory_of_which_nothing_can_be_read_is_reported() -> None:
    nothing = sum_up([parse_measured("\n==\n==\n")], asked=2, unnamed=0)
    text = report({"sizes": asdict(nothing)}, max_files=10, max_marks=10)
    assert "2 files could not be read" in text


def test_a_working_directory_that_is_gone_is_said_to_be(
    project: Path, heald_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALD_HOME", str(heald_home))
    gone = project / "gone"
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" -m heald "$@"'
    for words in (["demo"], ["run", "x"]):
        done = subprocess.run(
            ["sh", "-c", script, sys.executable, *words],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert "CWD_INVALID" in done.stderr
        assert "Traceback" not in done.stderr
    assert not gone.exists()


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_what_is_no_directory_is_refused_and_named(
    heald: CommandRunner, project: Path, kind: str
) -> None:
    if kind == "file":
        (project / "file").touch()
    done = heald("demo", kind, code=1)
    assert "CWD_INVALID" in done.stderr
    assert str(project / kind) in done.stderr
    assert printed(heald("sessions", "list", "--json")) == []
