"""`heald run` at a real terminal: what agents ask is put to the person who sits there."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from heald.testing import CommandRunner
from heald_agent import AskOpened
from heald_run.answering import answer_of

PLUGIN = """
from collections.abc import Iterable

from heald import NoConfig, Plugin, implements
from heald_models_scripted import Call, Conversation, Reply, Script, scripts

QUESTION = {"question": "Which \\x1b[31mcolour?", "options": ["red", "blue"]}


def play(conversation: Conversation) -> Reply:
    if conversation.prompt == "child" or conversation.prompt == "ask":
        call = Call(tool="ask_person", arguments=QUESTION)
    elif conversation.prompt == "plan":
        call = Call(tool="leave_plan", arguments={"plan": "Mend it all."})
    else:
        task = {"task": "child", "label": "painter", "mode": "one-shot"}
        call = Call(tool="subagent", arguments=task)
    if conversation.step == 0:
        return Reply(calls=(call,))
    return Reply(text="; ".join(result.text for result in conversation.results()))


class AskingPlugin(Plugin[NoConfig]):
    @implements(scripts)
    def its_scripts(self) -> Iterable[Script]:
        return [Script("asks", play)]
"""
ROWS = {"ask": "ask", "plan": "plan", "agents": "tools-agents"}


@pytest.fixture(autouse=True)
def asking(tmp_path: Path, heald_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a model that asks, and make a preset on which it can."""
    site = tmp_path / "site"
    info = site / "asking-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: asking\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[heald.plugins]\nasking = asking:AskingPlugin\n")
    (site / "asking.py").write_text(PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(site))
    (heald_home / "heald.toml").write_text('[[rows]]\nid = "asking"\nplugin = "asking"\n')
    folder = heald_home / "presets" / "asking"
    folder.mkdir(parents=True)
    rows = (f'[[rows]]\nid = "{row}"\nplugin = "{plugin}"\n' for row, plugin in ROWS.items())
    (folder / "preset.toml").write_text("".join(rows))


@attrs.define
class Terminal:
    """A process whose input and messages are a terminal."""

    process: subprocess.Popen[str]
    master: int
    seen: str = ""

    def until(self, pattern: str) -> str:
        """Return what has been shown once it fits; a minute is longer than any of it takes."""
        end = time.monotonic() + 60
        while not re.search(pattern, self.seen):
            ready, _, _ = select.select([self.master], [], [], max(end - time.monotonic(), 0))
            if not ready or not (piece := self._read()):
                pytest.fail(f"{pattern!r} was not shown in\n{self.seen}")
            self.seen += piece
        return self.seen

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def ended(self) -> str:
        """Wait for the process to end, and return its standard output."""
        while self._read():
            pass
        out, _ = self.process.communicate(timeout=60)
        return out

    def _read(self) -> str:
        with suppress(OSError):  # nobody has the other end any more
            return os.read(self.master, 65_536).decode()
        return ""


Sit = Callable[..., Terminal]


@pytest.fixture
def sit(heald_home: Path, project: Path) -> Iterator[Sit]:
    """Return a function that runs `heald run` at a terminal."""
    sat: list[Terminal] = []

    def sit(*words: str) -> Terminal:
        master, slave = pty.openpty()
        model = ["--preset", "asking", "--model", "scripted:asks"]
        process = subprocess.Popen(
            [sys.executable, "-m", "heald", "run", *model, *words],
            cwd=project,
            env=os.environ | {"HEALD_HOME": str(heald_home), "TERM": "xterm", "COLUMNS": "120"},
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=slave,
            text=True,
        )
        os.close(slave)
        sat.append(Terminal(process, master))
        return sat[-1]

    yield sit
    for terminal in sat:
        if terminal.process.poll() is None:
            terminal.process.kill()
        terminal.process.communicate()
        os.close(terminal.master)


def decided(heald: CommandRunner) -> list[dict[str, Any]]:
    """Return what came of each ask of every session."""
    found: list[dict[str, Any]] = []
    for session in json.loads(heald("sessions", "list", "--all", "--json").stdout):
        shown = heald("sessions", "show", session["id"], "--json").stdout
        found += [e["data"] for e in json.loads(shown) if e["type"] == "ask/decided"]
    return found


def test_a_question_is_shown_and_a_number_answers_it(sit: Sit, heald: CommandRunner) -> None:
    terminal = sit("ask")
    shown = terminal.until("declines: ")
    assert "agent asks:" in shown
    assert "Which \\x1b[31mcolour?" in shown
    assert "\x1b[31m" not in shown  # a model has no way to the person's terminal
    assert "2. blue" in shown
    terminal.type("2\n")
    assert terminal.ended().startswith("blue\n")
    assert terminal.process.returncode == 0
    (answer,) = decided(heald)
    assert (answer["outcome"], answer["answer"], answer["by"]) == ("answered", "blue", "terminal")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("2", ("answered", "blue")),
        (" yé low ", ("answered", "yé low")),
        ("3", ("answered", "3")),
        ("0", ("answered", "0")),
        ("", ("denied", None)),
    ],
)
def test_a_number_is_an_option_other_words_are_an_answer_and_none_is_a_refusal(
    line: str, answer: Any
) -> None:
    ask = AskOpened("a", "question", "Which?", 0, options=["red", "blue"])
    assert answer_of(ask, line) == answer


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("y", ("approved", None)),
        ("YES ", ("approved", None)),
        ("", ("denied", None)),
        ("n", ("denied", None)),
        ("yes, but later", ("denied", "yes, but later")),
    ],
)
def test_nothing_but_a_plain_yes_approves(line: str, answer: Any) -> None:
    assert answer_of(AskOpened("a", "approval", "Do it?", 0), line) == answer


def test_what_a_subagent_asks_is_shown_with_its_name(sit: Sit) -> None:
    terminal = sit("delegate")
    assert "painter asks:" in terminal.until("declines: ")
    terminal.type("1\n")
    assert "red" in terminal.ended()


def test_ctrl_c_at_a_question_ends_the_run(sit: Sit, heald: CommandRunner) -> None:
    terminal = sit("ask")
    terminal.until("declines: ")
    terminal.process.send_signal(signal.SIGINT)
    terminal.ended()
    assert terminal.process.returncode == 130
    assert [answer["outcome"] for answer in decided(heald)] == ["cancelled"]


def test_a_question_that_is_not_answered_in_time_is_taken_back(sit: Sit, heald_home: Path) -> None:
    with (heald_home / "heald.toml").open("a") as file:
        file.write('[[patch]]\nrow = "agent"\nconfig.merge = { ask_deadline_s = 0.5 }\n')
    terminal = sit("ask")
    terminal.until("No answer is wanted any more: expired by deadline")
    assert "nobody answered in 0.5 s" in terminal.ended()
    assert terminal.process.returncode == 0


@pytest.mark.parametrize("words", [("--json",), ()])
def test_where_nobody_can_answer_it_is_denied_at_once(
    heald: CommandRunner, words: tuple[str, ...]
) -> None:
    run = ("run", "--preset", "asking", "--model", "scripted:asks", *words, "ask")
    assert "nobody is there to answer" in heald(*run).stdout


def test_json_at_a_terminal_is_for_programs_so_nobody_is_asked(sit: Sit) -> None:
    terminal = sit("--json", "ask")
    assert "nobody is there to answer" in json.loads(terminal.ended())["text"]


@pytest.mark.parametrize(
    ("typed", "read"), [("yes\n", "plan mode is off"), ("not yet\n", "said: not yet")]
)
def test_a_plan_is_shown_and_only_a_yes_approves_it(
    sit: Sit, heald: CommandRunner, typed: str, read: str
) -> None:
    on = heald("run", "--preset", "asking", "--json", "/plan on")
    terminal = sit("--session", json.loads(on.stdout)["session"], "plan")
    assert "Mend it all." in terminal.until("be different: ")
    terminal.type(typed)
    assert read in terminal.ended()
