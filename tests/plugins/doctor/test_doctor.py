"""`heald doctor`, as people and programs run it, with checks that plugins bring."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from heald.testing import CommandRunner
from heald_doctor import Check, Finding, Progress

if TYPE_CHECKING:
    from tests.plugins.doctor.conftest import InstallChecks

CLINIC = """
from pathlib import Path

from heald import Cancelled, NoConfig, Plugin, implements
from heald_doctor import Check, Finding, checks


class ClinicPlugin(Plugin[NoConfig]):
    @property
    def copy(self):
        return self.scope.host.home / "copy.txt"

    async def look(self, progress):
        progress(0)
        progress(1, 1)
        if self.copy.exists():
            return [Finding(severity="warning", message="the copy is slow\\x1b[31m", remedy="wait")]
        return [Finding(severity="error", message="the copy is gone")]

    async def make(self, progress):
        progress(1, 1)
        self.copy.write_text("made")

    async def raise_it(self, progress):
        raise ZeroDivisionError("by nought")

    async def leave(self, progress):
        raise SystemExit(3)

    async def cancelled(self, progress):
        raise Cancelled("no more")

    async def odd(self, progress):
        return ["not a finding"]

    async def well(self, progress):
        return ()

    @implements(checks)
    def bring(self):
        return [
            Check(name="copy", about="a copy", run=self.look, rebuild=self.make),
            Check(name="unmade", about="cannot be made", run=self.well, rebuild=self.raise_it),
            Check(name="raises", about="fails", run=self.raise_it),
            Check(name="leaves", about="exits", run=self.leave),
            Check(name="refuses", about="has a code", run=self.cancelled),
            Check(name="odd", about="finds text", run=self.odd),
            Check(name="well", about="finds nothing", run=self.well),
        ]
"""
FAILING = """
from heald import NoConfig, Plugin


class ClinicPlugin(Plugin[NoConfig]):
    async def start(self):
        raise RuntimeError("no water")
"""
FAILING_PROVIDER = """
from heald import NoConfig, Plugin, implements, provide


@provide
def well():
    \"\"\"Give water.\"\"\"


class ClinicPlugin(Plugin[NoConfig]):
    @implements(well)
    def give(self):
        raise RuntimeError("no water")
"""
LISTENING = """
from heald import NoConfig, Plugin, implements, observe
from heald_doctor import Check, checks


@observe
def rung(times: int) -> None:
    \"\"\"Hear a bell.\"\"\"


class ClinicPlugin(Plugin[NoConfig]):
    async def ring(self, progress):
        self.scope.notify(rung, 1)
        self.scope.notify(rung, 2)
        return ()

    @implements(rung)
    def hear(self, times):
        raise RuntimeError("deaf")

    @implements(checks)
    def bring(self):
        return [Check(name="rings", about="a bell", run=self.ring)]
"""
WAITING = """
import asyncio
import sys

from heald import NoConfig, Plugin, implements
from heald_doctor import Check, checks


class ClinicPlugin(Plugin[NoConfig]):
    async def wait(self, progress):
        print("waiting", file=sys.stderr, flush=True)
        await asyncio.Event().wait()

    @implements(checks)
    def bring(self):
        return [Check(name="waits", about="for ever", run=self.wait)]
"""


def reports(text: str) -> dict[str, dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)
    return {one["name"]: one for one in found}


def test_a_new_home_is_well(heald_cli: CommandRunner) -> None:
    done = heald_cli("doctor")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["rows", "ok"]
    assert all(words[1:] == ["ok"] for words in lines)
    assert done.stderr == ""


def test_a_finding_stands_below_its_check_with_what_to_do(
    heald_cli: CommandRunner, install_checks: InstallChecks
) -> None:
    install_checks(CLINIC)
    done = heald_cli("doctor", "copy", "well", code=1)
    assert done.stdout.splitlines() == [
        "copy  1 finding",
        "  error: the copy is gone",
        "    `heald doctor copy --rebuild` makes it anew",
        "well  ok",
    ]
    assert done.stderr == ""  # no progress where it is not a terminal


def test_rebuilding_comes_first_and_what_is_left_decides_the_exit_code(
    heald_cli: CommandRunner, install_checks: InstallChecks, heald_home: Path
) -> None:
    install_checks(CLINIC)
    done = heald_cli("doctor", "copy", "--rebuild")
    assert done.stdout.splitlines() == [
        "copy  rebuilt, 1 finding",
        "  warning: the copy is slow\\x1b[31m",
        "    wait",
    ]
    assert (heald_home / "copy.txt").read_text() == "made"


def test_without_a_name_everything_that_can_be_is_rebuilt(
    heald_cli: CommandRunner, install_checks: InstallChecks
) -> None:
    install_checks(CLINIC)
    found = reports(heald_cli("doctor", "--rebuild", "--json", code=1).stdout)
    ours = {name: one["rebuilt"] for name, one in found.items() if one["plugin"] == "clinic"}
    assert ours.pop("copy") is True
    assert not any(ours.values())
    (failure,) = found["unmade"]["findings"]
    assert failure["message"] == (
        "rebuilding failed (plugin clinic, distribution clinic-dist): ZeroDivisionError: by nought"
    )


def test_whatever_a_check_raises_is_a_finding_that_names_its_plugin(
    heald_cli: CommandRunner, install_checks: InstallChecks
) -> None:
    install_checks(CLINIC)
    done = heald_cli("doctor", "--json", code=1)
    found = reports(done.stdout)
    owner = "checking failed (plugin clinic, distribution clinic-dist): "
    broken = {"raises": "ZeroDivisionError: by nought", "leaves": "SystemExit: 3"}
    broken["refuses"] = "CANCELLED: cancelled (no more); nothing more was done"
    broken["odd"] = "TypeError: 'not a finding' is no Finding"
    for name, reason in broken.items():
        (finding,) = found[name]["findings"]
        assert (finding["severity"], finding["message"]) == ("error", owner + reason)
    assert found["well"]["findings"] == []
    assert 'raise ZeroDivisionError("by nought")' in done.stderr  # for who makes the plugin


def test_programs_get_an_array_of_checks(
    heald_cli: CommandRunner, install_checks: InstallChecks
) -> None:
    install_checks(CLINIC)
    assert json.loads(heald_cli("doctor", "copy", "--json", code=1).stdout) == [
        {
            "name": "copy",
            "about": "a copy",
            "plugin": "clinic",
            "can_rebuild": True,
            "rebuilt": False,
            "findings": [
                {"severity": "error", "message": "the copy is gone", "remedy": None},
            ],
        }
    ]


def test_the_list_says_which_checks_there_are_and_makes_none(
    heald_cli: CommandRunner, install_checks: InstallChecks
) -> None:
    install_checks(CLINIC)
    lines = heald_cli("doctor", "--list").stdout.splitlines()
    assert lines[0].split("  ")[0] == "check"
    assert lines[1].split()[:3] == ["rows", "doctor", "no"]
    assert ["copy", "clinic", "yes", "a", "copy"] in [line.split() for line in lines]
    found = json.loads(heald_cli("doctor", "--list", "--json").stdout)
    assert {"name": "copy", "about": "a copy", "plugin": "clinic", "can_rebuild": True} in found


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("cpoy",), "no check 'cpoy'; did you mean 'copy'?"),
        (("copy", "zzz"), "known: "),
        (("well", "--rebuild"), "no check that can be rebuilt 'well'"),
    ],
)
def test_a_name_that_no_check_has_is_refused_before_any_is_made(
    heald_cli: CommandRunner, install_checks: InstallChecks, words: tuple[str, ...], says: str
) -> None:
    install_checks(CLINIC)
    done = heald_cli("doctor", *words, code=1)
    assert done.stdout == ""
    assert done.stderr.startswith("heald: NOT_FOUND: ")
    assert says in done.stderr


@pytest.mark.parametrize(
    ("stage", "source"),
    [
        ("import", "raise RuntimeError('no water')"),
        ("import", "import sys; sys.exit('no water')"),
        ("construct", FAILING.replace("async def start(self)", "def __init__(self, context)")),
        ("start", FAILING),
        ("start", FAILING.replace("RuntimeError", "SystemExit")),
        ("provide", FAILING_PROVIDER),
    ],
)
def test_the_doctor_works_with_a_row_that_failed_at_any_stage(
    heald_cli: CommandRunner, install_checks: InstallChecks, stage: str, source: str
) -> None:
    install_checks(source, name="drought")
    rows, *others = json.loads(heald_cli("doctor", "--json", code=1).stdout)
    (finding,) = rows["findings"]
    assert finding["message"].startswith(
        f"row drought (plugin drought, distribution drought-dist) failed at {stage}: "
    )
    assert "no water" in finding["message"]
    assert not any(one["findings"] for one in others)
    assert "drought" in heald_cli("plugins", "list").stdout


def test_failed_rows_are_errors_and_the_other_checks_are_made(
    heald_cli: CommandRunner, install_checks: InstallChecks
) -> None:
    install_checks(FAILING, name="drought")
    install_checks(CLINIC)
    found = reports(heald_cli("doctor", "--json", code=1).stdout)
    (finding,) = found["rows"]["findings"]
    assert finding["severity"] == "error"
    for part in ("row drought", "plugin drought", "drought-dist", "at start", "no water"):
        assert part in finding["message"]
    assert "copy" in found
    assert "drought" in heald_cli("doctor", "rows", code=1).stdout


def test_failed_rows_are_shown_in_a_host_that_has_no_row_of_the_doctor(
    heald_cli: CommandRunner, heald_home: Path, install_checks: InstallChecks
) -> None:
    install_checks("raise RuntimeError('broken in two')", name="drought")
    bare = heald_home / "profiles" / "bare"
    bare.mkdir(parents=True)
    (bare / "heald.toml").write_text("bundles = []\n")
    done = heald_cli("--profile", "bare", "doctor", code=1)
    assert done.stdout.splitlines()[0] == "rows  1 finding"
    assert "failed at import" in done.stdout
    assert "broken in two" in done.stdout


def test_a_listener_that_raised_is_a_warning(
    heald_cli: CommandRunner, install_checks: InstallChecks
) -> None:
    install_checks(LISTENING)
    done = heald_cli("doctor", "rings", "rows")
    assert done.stdout.splitlines()[:3] == [
        "rings  ok",
        "rows   1 finding",
        "  warning: a listener of plugin clinic raised 2 times since the host was opened",
    ]


def test_an_interrupt_ends_a_check_and_is_no_finding(
    heald_home: Path, install_checks: InstallChecks
) -> None:
    install_checks(WAITING)
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{heed}; from heald.cli import main; main()", "doctor", "waits"],
        env={**os.environ, "HEALD_HOME": str(heald_home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "heald: interrupted\n")


def test_a_composition_that_is_refused_is_reported_with_every_fault(
    heald_cli: CommandRunner, heald_home: Path
) -> None:
    (heald_home / "heald.toml").write_text(
        '[[rows]]\nid = "a"\nplugin = "qurey"\n[[rows]]\nid = "b"\nplugin = "nothing-like-it"\n'
    )
    done = heald_cli("doctor", "corpus", code=1)
    assert done.stdout.splitlines()[0] == "rows  2 findings"
    assert "row a: plugin: no plugin 'qurey'; did you mean 'query'?" in done.stdout
    assert "No other check" in done.stderr
    (one,) = json.loads(heald_cli("doctor", "--json", code=1).stdout)
    assert [f["message"].partition(":")[0] for f in one["findings"]] == ["PLUGIN_UNKNOWN"] * 2


def test_strictness_refuses_a_failed_row_as_it_does_everywhere(
    heald_cli: CommandRunner, install_checks: InstallChecks
) -> None:
    install_checks(FAILING, name="drought")
    done = heald_cli("--strict", "doctor", code=1)
    assert (done.stdout, "ROWS_FAILED" in done.stderr) == ("", True)


def test_a_check_cannot_take_the_name_of_the_doctors_own(
    heald_cli: CommandRunner, install_checks: InstallChecks
) -> None:
    install_checks(CLINIC.replace('name="well"', 'name="rows"'))
    found = reports(heald_cli("doctor", "--json", code=1).stdout)
    assert found["rows"]["plugin"] == "doctor"
    (finding,) = found["rows"]["findings"]
    assert "'rows'" in finding["message"]
    assert "clinic" in finding["message"]


@pytest.mark.parametrize("name", ["", "two words", "-x", "a.b"])
def test_a_check_has_a_name_that_can_be_typed(name: str) -> None:
    async def run(_: Progress) -> tuple[Finding, ...]:
        return ()

    with pytest.raises(ValueError, match="name"):
        Check(name=name, about="nothing", run=run)


def test_a_terminal_sees_a_bar_and_the_report_is_not_in_it(
    heald_home: Path, install_checks: InstallChecks
) -> None:
    install_checks(CLINIC)
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "heald", "doctor", "copy", "--rebuild"],
        env={**os.environ, "HEALD_HOME": str(heald_home), "TERM": "xterm", "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as process:
        os.close(theirs)
        out, _ = process.communicate(timeout=60)
        shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert out.splitlines()[0] == "copy  rebuilt, 1 finding"
    assert "rebuilding copy" in shown
    assert "checking copy" in shown
