"""`sessions new`, `presets use --session`, `/preset` and `run --continue-as`, in real processes."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from heald.testing import CommandRunner

ECHO = ("--model", "scripted:echo")


@pytest.fixture
def heald(heald_cli: CommandRunner, project: Path) -> CommandRunner:
    """Return a function that runs `heald` in the project directory."""
    return partial(heald_cli, cwd=project)


def printed(done: subprocess.CompletedProcess[str]) -> Any:
    """Return what was printed as JSON."""
    return json.loads(done.stdout)


def log(heald: CommandRunner, session: str) -> list[tuple[str, Any]]:
    """Return types and data of a session's events."""
    events = printed(heald("sessions", "show", session, "--json"))
    return [(event["type"], event["data"]) for event in events]


def test_a_new_session_logs_its_first_choice_and_can_be_gone_on_with(
    heald: CommandRunner, project: Path
) -> None:
    made = heald("sessions", "new", "--preset", "minimal", "--title", "Later")
    session = made.stdout.strip()

    assert f"heald run --session {session}" in made.stderr
    assert log(heald, session) == [
        ("agent-preset/selected", {"preset": "minimal"}),
        ("session/renamed", {"title": "Later"}),
    ]
    (listed,) = printed(heald("sessions", "list", "--json"))
    assert (listed["id"], listed["cwd"], listed["preset"]) == (
        session,
        str(project),
        "minimal",
    )
    answer = printed(heald("run", "--session", session, *ECHO, "--json", "hello"))
    assert (answer["session"], answer["text"]) == (session, "hello")


def test_a_new_session_is_on_the_default_and_works_where_it_is_told_to(
    heald: CommandRunner, tmp_path: Path
) -> None:
    made = printed(heald("sessions", "new", "--json", "--cwd", str(tmp_path)))

    assert made == {"id": made["id"], "preset": "standard", "cwd": str(tmp_path)}
    assert log(heald, made["id"]) == [("agent-preset/selected", {"preset": "standard"})]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--preset", "nope"), 1, "PRESET_NOT_FOUND"),
        (("--cwd", "nowhere"), 2, "does not exist"),
        (("--title", "  "), 2, "visible character"),
    ],
)
def test_a_new_session_that_cannot_be_leaves_none(
    heald: CommandRunner, words: tuple[str, ...], code: int, told: str
) -> None:
    assert told in heald("sessions", "new", *words, code=code).stderr
    assert printed(heald("sessions", "list", "--json")) == []


def test_a_stored_session_is_switched_and_nothing_else_is_written(heald: CommandRunner) -> None:
    session = printed(heald("sessions", "new", "--json"))["id"]

    done = heald("presets", "use", "minimal", "--session", session[:6])
    again = printed(heald("presets", "use", "minimal", "--session", session, "--json"))

    assert done.stdout == f"session {session} runs on preset minimal\n"
    assert again == {"session": session, "preset": "minimal", "seq": None}
    assert log(heald, session) == [
        ("agent-preset/selected", {"preset": "standard"}),
        ("agent-preset/selected", {"preset": "minimal"}),
    ]
    rows = heald("sessions", "list").stdout
    assert "minimal" in rows
    assert "standard" not in rows
    default = [p["id"] for p in printed(heald("presets", "list", "--json")) if p["default"]]
    assert default == ["standard"]


def test_a_session_that_has_begun_is_not_switched(heald: CommandRunner) -> None:
    session = printed(heald("run", *ECHO, "--json", "hello"))["session"]
    before = log(heald, session)

    done = heald("presets", "use", "minimal", "--session", session, code=1)

    assert "PRESET_LOCKED" in done.stderr
    assert "heald sessions new --preset minimal" in done.stderr
    assert log(heald, session) == before


def test_the_slash_command_shows_lists_and_switches(heald: CommandRunner) -> None:
    session = printed(heald("sessions", "new", "--json"))["id"]

    shown = printed(heald("run", "--session", session, "--json", "/preset"))["text"]
    assert shown.splitlines()[0].startswith("The preset is standard.")
    assert [line[:10] for line in shown.splitlines()[1:]] == ["* standard", "  minimal:"]
    run = partial(heald, "run", "--session", session, "--json")
    assert printed(run("/preset minimal"))["text"] == "The preset is minimal."
    assert printed(run("/preset minimal"))["text"] == "The preset is minimal already."
    assert "PRESET_NOT_FOUND" in run("/preset nope", code=1).stderr
    run(*ECHO, "hello")
    assert "PRESET_LOCKED" in run("/preset standard", code=1).stderr
    ran = [data for kind, data in log(heald, session) if kind == "command/ran"]
    assert [each["arguments"] for each in ran] == ["", "minimal", "minimal", "nope", "standard"]


def test_a_session_whose_preset_is_gone_is_shown_and_goes_on_with_another(
    heald: CommandRunner, heald_home: Path
) -> None:
    heald("presets", "new", "mine")
    session = printed(heald("run", "--preset", "mine", *ECHO, "--json", "hello"))["session"]
    shutil.rmtree(heald_home / "presets" / "mine")

    assert "mine" in heald("sessions", "list").stdout
    assert "hello" in heald("sessions", "show", session).stdout
    for verb in ("commands", "skills"):
        assert f"--session {session} --continue-as ID" in heald(verb, session, code=1).stderr
        assert heald(verb, session, "--preset", "minimal").returncode == 0
    told = heald("run", "--session", session, "more", code=1).stderr
    assert "PRESET_GONE" in told
    assert f"heald run --session {session} --continue-as ID" in told
    assert "minimal" in told

    words = ("run", "--session", session, "--continue-as", "minimal", "--json", "more")
    assert printed(heald(*words))["text"] == "more"
    assert ("agent-preset/selected", {"preset": "minimal"}) in log(heald, session)
    assert printed(heald("run", "--session", session, "--json", "again"))["text"] == "again"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--continue-as", "minimal"), "--continue-as needs --session or --continue"),
        (("--continue", "--preset", "x", "--continue-as", "minimal"), "OPTIONS_CONFLICT"),
    ],
)
def test_continue_as_is_for_a_session_that_is_gone_on_with(
    heald: CommandRunner, words: tuple[str, ...], told: str
) -> None:
    assert told in heald("run", *words, "x", code=2).stderr


def test_without_the_preset_plugin_no_preset_appears_anywhere(
    heald: CommandRunner, heald_home: Path
) -> None:
    (heald_home / "heald.toml").write_text('[[patch]]\nrow = "preset"\ndisabled = true\n')

    session = printed(heald("run", *ECHO, "--json", "hello"))["session"]

    (listed,) = printed(heald("sessions", "list", "--json"))
    assert listed["preset"] is None
    assert listed["projections"]["values"]["agentPreset"] is None
    assert "agent-preset/selected" not in [kind for kind, _ in log(heald, session)]
    commands = printed(heald("commands", session, "--json"))
    assert [each["name"] for each in commands] == ["model", "rename"]
    more = printed(heald("run", "--session", session, "--json", "more"))
    assert more["outcome"] == "completed"
    for words in (("run", "--preset", "minimal", "more"), ("presets", "list"), ("sessions", "new")):
        assert "enable a row of plugin 'preset'" in heald(*words, code=1).stderr
