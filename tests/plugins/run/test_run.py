"""`heald run`: tasks, commands, sessions that go on, and how a run ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from heald.testing import CommandRunner


def wait_for(path: Path) -> None:
    """Wait until another process has made a file."""
    while not path.exists():
        time.sleep(0.01)


def printed(done: subprocess.CompletedProcess[str]) -> Any:
    """Return what was printed as JSON."""
    return json.loads(done.stdout)


PLUGIN = """
from collections.abc import Iterable

from heald import NoConfig, Plugin, implements
from heald_commands import Command, CommandCall, commands
from heald_models_scripted import Call, Reply, Script, scripts, steps


class TrialPlugin(Plugin[NoConfig]):
    @implements(scripts)
    def its_scripts(self) -> Iterable[Script]:
        wait = Call(tool="shell", arguments={"command": "touch waiting; sleep 600"})
        return [
            steps("slow", [Reply(text="I wait.", calls=(wait,)), Reply(text="Waited.")]),
            steps("failing", [Reply(failure="rate_limit")]),
        ]

    @implements(commands)
    def its_commands(self) -> Iterable[Command]:
        async def shout(call: CommandCall) -> str:
            return call.arguments.upper()

        return [Command("shout", "Say it louder.", shout)]
"""


@pytest.fixture(autouse=True)
def trial_plugin(tmp_path: Path, heald_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a plugin with scripts and a command, and give it a row."""
    site = tmp_path / "site"
    info = site / "trial-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: trial\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[heald.plugins]\ntrial = trial:TrialPlugin\n")
    (site / "trial.py").write_text(PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(site))
    (heald_home / "heald.toml").write_text('[[rows]]\nid = "trial"\nplugin = "trial"\n')


def test_the_answer_goes_to_standard_output(heald: CommandRunner) -> None:
    done = heald("run", "--model", "scripted:echo", "Hello there.")
    assert done.stdout.splitlines()[0] == "Hello there."


def test_without_a_model_it_says_so_first_and_surveys(
    heald: CommandRunner, heald_home: Path
) -> None:
    done = heald("run", "What is here?")
    first = done.stderr.splitlines()[0]
    assert "no model is configured" in first
    assert str(heald_home / "heald.toml") in done.stderr
    assert "The directory has no files." in done.stdout


def test_the_model_of_the_home_file_is_used(heald: CommandRunner, heald_home: Path) -> None:
    with (heald_home / "heald.toml").open("a") as file:
        file.write('[[patch]]\nrow = "agent"\nconfig.merge = { model = "scripted:echo" }\n')
    done = heald("run", "Hello.")
    assert "no model" not in done.stderr
    assert done.stdout.startswith("Hello.")


def test_continue_goes_on_with_the_latest_session_of_this_directory(
    heald: CommandRunner, tmp_path: Path
) -> None:
    first = printed(heald("run", "--model", "scripted:echo", "--json", "one"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    heald("run", "--model", "scripted:echo", "two", cwd=elsewhere)
    again = printed(heald("run", "--continue", "--json", "three"))
    assert again["session"] == first["session"]
    assert (again["text"], again["turns"]) == ("three", 2)


def test_nothing_to_continue_is_said(heald: CommandRunner) -> None:
    assert "NOTHING_TO_CONTINUE" in heald("run", "--continue", "more", code=1).stderr


def test_continue_and_session_exclude_each_other(heald: CommandRunner) -> None:
    done = heald("run", "--continue", "--session", "x", "more", code=2)
    assert "OPTIONS_CONFLICT" in done.stderr


def test_the_beginning_of_an_id_is_enough(heald: CommandRunner) -> None:
    first = printed(heald("run", "--model", "scripted:echo", "--json", "one"))
    again = printed(heald("run", "--session", first["session"][:6], "--json", "two"))
    assert again["session"] == first["session"]


def test_an_unknown_session_is_refused_and_nothing_is_made(heald: CommandRunner) -> None:
    assert "SESSION_NOT_FOUND" in heald("run", "--session", "nobody", "more", code=1).stderr
    assert printed(heald("sessions", "list", "--json")) == []


def test_an_unknown_preset_is_refused_naming_those_there_are(heald: CommandRunner) -> None:
    done = heald("run", "--preset", "standart", "--model", "scripted:echo", "x", code=1)
    assert "PRESET_NOT_FOUND" in done.stderr
    assert "did you mean 'standard'?" in done.stderr


def test_an_unknown_model_adapter_is_refused_naming_the_nearest(heald: CommandRunner) -> None:
    done = heald("run", "--model", "scriptd:echo", "x", code=1)
    assert "MODEL_UNKNOWN" in done.stderr
    assert "scripted" in done.stderr


def test_a_failed_turn_exits_with_1_and_says_why(heald: CommandRunner) -> None:
    done = heald("run", "--model", "scripted:failing", "x", code=1)
    assert "heald: MODEL_FAILED: model scripted:failing: rate_limit" in done.stderr
    result = printed(heald("run", "--model", "scripted:failing", "--json", "x", code=1))
    assert result["outcome"] == "failed"


def test_a_slash_command_runs_without_a_turn_and_is_logged(heald: CommandRunner) -> None:
    result = printed(heald("run", "--json", "/shout all of it"))
    assert (result["text"], result["turns"]) == ("ALL OF IT", 0)
    assert "command/ran" in heald("sessions", "show", result["session"]).stdout


@pytest.fixture
def skill(project: Path) -> None:
    """Give the project a skill."""
    file = project / ".heald" / "skills" / "fold" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: fold\ndescription: Fold a letter.\n---\nFold it thrice.\n")


@pytest.mark.usefixtures("skill")
def test_a_skill_that_is_run_as_a_command_is_answered(heald: CommandRunner) -> None:
    done = heald("run", "--model", "scripted:echo", "/fold twice")
    assert done.stdout.splitlines()[0] == "/fold twice"
    assert "Fold it thrice." in done.stdout
    assert done.stderr.splitlines()[-1] == "agent: completed"

    again = printed(heald("run", "--continue", "--model", "scripted:echo", "--json", "/fold more"))
    assert (again["outcome"], again["turns"]) == ("completed", 2)
    assert again["text"].startswith("/fold more")


@pytest.mark.usefixtures("skill")
def test_a_skill_whose_turn_fails_is_a_failed_run(heald: CommandRunner) -> None:
    done = heald("run", "--model", "scripted:failing", "/fold", code=1)
    assert "MODEL_FAILED" in done.stderr


def test_a_command_of_a_session_that_had_turns_says_what_it_says(heald: CommandRunner) -> None:
    heald("run", "--model", "scripted:echo", "hello")
    result = printed(heald("run", "--continue", "--json", "/shout all of it"))
    assert (result["outcome"], result["text"], result["turns"]) == ("completed", "ALL OF IT", 1)


def test_an_unknown_slash_command_names_the_nearest(heald: CommandRunner) -> None:
    done = heald("run", "/shot x", code=1)
    assert "COMMAND_UNKNOWN" in done.stderr
    assert "shout" in done.stderr


@pytest.mark.parametrize("task", ["", "  \n"])
def test_an_empty_task_is_refused(heald: CommandRunner, task: str) -> None:
    assert "TASK_EMPTY" in heald("run", task, code=2).stderr
    assert printed(heald("sessions", "list", "--json")) == []


def test_commands_to_go_on_with_reach_the_same_host(heald: CommandRunner, tmp_path: Path) -> None:
    patch = tmp_path / "more.toml"
    patch.write_text('[[patch]]\nrow = "agent"\nconfig.merge = { max_steps = 5 }\n')
    done = heald("--patch", str(patch), "run", "--model", "scripted:echo", "x")
    assert f"heald --patch {patch} sessions show" in done.stdout


def test_a_session_that_nothing_keeps_is_said_not_to_be_kept(
    heald: CommandRunner, tmp_path: Path
) -> None:
    patch = tmp_path / "none.toml"
    patch.write_text('[[patch]]\nrow = "persistence"\ndisabled = true\n')
    done = heald("--patch", str(patch), "run", "--model", "scripted:echo", "x")
    assert "it was not kept" in done.stdout
    assert "sessions show" not in done.stdout


@pytest.mark.parametrize("as_json", [False, True])
def test_an_interrupted_run_is_aborted_exits_with_130_and_can_go_on(
    heald: CommandRunner, heald_home: Path, project: Path, *, as_json: bool
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "heald", "run", "--model", "scripted:slow", "Wait."]
        + ["--json"] * as_json,
        cwd=project,
        env=os.environ | {"HEALD_HOME": str(heald_home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(project / "waiting")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    if as_json:
        assert json.loads(out)["outcome"] == "aborted"
    else:
        assert "aborted: interrupted" in err
    (session,) = printed(heald("sessions", "list", "--json"))
    events = printed(heald("sessions", "show", session["id"], "--json"))
    assert events[-1]["type"] == "turn/end"
    assert events[-1]["data"] == {"turn": 1, "outcome": "aborted", "cause": "interrupted"}
    again = heald("run", "--session", session["id"], "--model", "scripted:echo", "Go on.")
    assert again.stdout.startswith("Go on.")
