"""The command line, run as people run it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.terminals import at_a_terminal, shown

if TYPE_CHECKING:
    from tests.kernel.conftest import Site

VERBS = """
import asyncio, sys
import click
from heald.verbs import host_verb, json_option, print_json

@click.command()
@click.argument("what")
@json_option
@host_verb
async def weave(host, what, as_json):
    "Weave WHAT."
    if as_json:
        print_json([{"what": what, "rows": [row.id for row in host.composition.mounted]}])
    return {"fine": None, "fault": 3}[what]

@click.command()
@host_verb
async def wait(host):
    "Wait to be interrupted."
    try:
        print("waiting", flush=True)
        await asyncio.Event().wait()
    finally:
        print("tidied", flush=True)

@click.command()
@host_verb
async def polite(host):
    "Wait to be interrupted, and end well."
    try:
        print("waiting", flush=True)
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return 0

@click.command()
@host_verb
async def linger(host):
    "Wait to be interrupted, and take until a line is read to end."
    try:
        print("waiting", flush=True)
        await asyncio.Event().wait()
    finally:
        print("ending", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print("tidied", flush=True)

@click.command()
@host_verb
async def hog(host):
    "Never let the event loop go on."
    print("waiting", flush=True)
    while sys.stdin.readline():
        print("going on", flush=True)

@click.command()
@host_verb
async def stumble(host):
    "Fail when interrupted."
    try:
        print("waiting", flush=True)
        await asyncio.Event().wait()
    finally:
        raise RuntimeError("boom")

@click.command()
def pour():
    "Print without end."
    while True:
        click.echo("x" * 1000)

@click.command()
@host_verb
async def drip(host):
    "Print without end, from a host."
    while True:
        print("x" * 1000)

@click.command()
def crash():
    "Fail on purpose."
    from heald import NotFound
    raise NotFound("thread", "rde", ("red",))
"""
PROFILE = '[[rows]]\nid = "{0}"\nplugin = "{0}"\n'


@pytest.fixture
def woven(site: Site) -> Site:
    """Install verbs and a profile of one row."""
    site.plugin("idle", "async def stop(self): print('stopped', flush=True)")
    names = re.findall(r"^(?:async )?def (\w+)", VERBS, re.MULTILINE)
    site.install(
        "heald-verbs",
        {"verbs_of_it.py": VERBS},
        verbs={f"loom.{name}": f"verbs_of_it:{name}" for name in names},
    )
    (site.home / "profiles/default").mkdir(parents=True)
    (site.home / "profiles/default/heald.toml").write_text(PROFILE.format("idle"))
    return site


IMPORTED = """
import sys
from heald.cli import main
try:
    main(sys.argv[1:])
finally:
    names = [name for name in sys.modules if name.startswith("heald_") or name == "asyncio"]
    print("imported:", *names, file=sys.stderr)
"""


@pytest.mark.parametrize("args", [("--version",), ("plugins", "list"), ("compose",)])
def test_the_kernels_own_verbs_import_no_plugin_even_if_all_are_broken(
    site: Site, args: tuple[str, ...]
) -> None:
    site.plugin("bad", before="sys.exit('imported')")
    (site.home / "profiles/default").mkdir(parents=True)
    (site.home / "profiles/default/heald.toml").write_text(PROFILE.format("bad"))
    ran = site.run(*args, code=IMPORTED)
    assert ran.code == 0
    assert ran.err == "imported:\n"


def test_the_version_is_the_distributions(site: Site) -> None:
    ran = site.run("--version")
    assert (ran.code, ran.out, ran.err) == (0, f"heald {metadata.version('heald')}\n", "")


def test_the_console_script_is_the_same_command() -> None:
    script = next(
        iter(
            metadata.distribution("heald").entry_points.select(
                name="heald", group="console_scripts"
            )
        )
    )
    assert script.value == "heald.__main__:main"


def test_plugins_list_says_whose_each_is_and_which_rows_use_it(woven: Site) -> None:
    ran = woven.run("plugins", "list")
    assert ran.code == 0
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0] == ["plugin", "distribution", "entry", "point", "host", "rows"]
    assert ["idle", "heald-idle", "1.0", "heald_idle:IdlePlugin", "idle"] in lines
    assert "\x1b" not in ran.out

    listed = json.loads(woven.run("plugins", "list", "--json").out)
    assert {
        "name": "idle",
        "distribution": "heald-idle",
        "version": "1.0",
        "entry_point": "heald_idle:IdlePlugin",
        "rows": ["idle"],
    } in listed


def test_plugins_list_works_when_the_layers_are_broken_and_names_conflict(woven: Site) -> None:
    (woven.home / "heald.toml").write_text("x = \n")
    woven.install("other", {}, plugins={"idle": "x:Y"})
    ran = woven.run("plugins", "list", "--json")
    assert ran.code == 1
    listed = [p for p in json.loads(ran.out) if p["name"] == "idle"]
    assert [p["distribution"] for p in listed] == ["heald-idle", "other"]
    assert [p["rows"] for p in listed] == [None, None]
    assert "LAYER_SYNTAX" in ran.err
    assert "NAME_CONFLICT: plugin 'idle' comes from heald-idle and other" in ran.err


@pytest.mark.parametrize("broken", ["layers", "names"])
def test_plugins_list_exits_with_1_if_it_could_not_tell_everything(
    woven: Site, broken: str
) -> None:
    if broken == "layers":
        (woven.home / "heald.toml").write_text("x = \n")
    else:
        woven.install("other", {}, plugins={"idle": "x:Y"})
    ran = woven.run("plugins", "list")
    assert ran.code == 1
    (line,) = (line for line in ran.out.splitlines() if "heald_idle:IdlePlugin" in line)
    assert line.split()[-1] == ("?" if broken == "layers" else "idle")


def test_compose_shows_each_row_and_field_with_its_origin_and_no_secret(woven: Site) -> None:
    home = woven.home / "heald.toml"
    home.write_text(
        '[[patch]]\nrow = "idle"\nconfig = {key = "${env:KEY}", deep = {x = 1}}\n'
        '[[patch]]\nrow = "idel"\noptional = true\ndisabled = true\n'
    )
    extra = woven.home / "extra.toml"
    extra.write_text('[[patch]]\nrow = "idle"\ndisabled = true\n')
    ran = woven.run("--patch", str(extra), "compose", env={"KEY": "s3cret"})
    base = str(woven.home / "profiles/default/heald.toml")
    assert ran.code == 0
    assert ran.out.splitlines()[-5:] == [
        f"idle (disabled)  [{base}]",
        f'  plugin = "idle"  [{base}]',
        f"  disabled = true  [{extra}]",
        f'  config.key = "${{env:KEY}}"  [{home}]',
        f"  config.deep.x = 1  [{home}]",
    ]
    assert [line.strip() for line in ran.out.splitlines()[1:4]] == [base, str(home), str(extra)]
    assert "did you mean 'idle'?" in ran.err
    assert "s3cret" not in ran.out + ran.err

    (row,) = json.loads(woven.run("compose", "--json", env={"KEY": "s3cret"}).out)
    assert row["config"] == {"key": "${env:KEY}", "deep": {"x": 1}}
    assert row["origins"]["config.deep.x"] == str(home)
    assert (row["id"], row["layer"], row["disabled"]) == ("idle", base, False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[patch]]\nrow = "idel"\ndisabled = true', ["ROW_UNKNOWN", "row idel", "'idle'"]),
        ('[[patch]]\nrow = "idle"\nplugin = "idel"', ["PLUGIN_UNKNOWN", "row idle", "'idle'"]),
        ("x = [\n\n!", ["LAYER_SYNTAX", "line 3"]),
        ("x = [\n1,\n", ["LAYER_SYNTAX", "(at line 2)"]),
        ("x = [", ["LAYER_SYNTAX", "(at line 1)"]),
        ('[[patch]]\nrow = "idle"\nconfig.k = "${env:NOPE}"', ["ENV_UNSET", "config.k", "NOPE"]),
    ],
)
def test_compose_refuses_what_cannot_be_composed_and_says_where(
    woven: Site, text: str, words: list[str]
) -> None:
    (woven.home / "heald.toml").write_text(text)
    ran = woven.run("compose")
    assert ran.code == 1
    assert ran.err.startswith("heald: COMPOSITION_INVALID: the composition has 1 fault")
    for word in [*words, str(woven.home / "heald.toml")]:
        assert word in ran.err
    assert "Traceback" not in ran.err


def test_compose_names_both_distributions_of_a_plugin_that_cannot_be_chosen(woven: Site) -> None:
    woven.install("other", {}, plugins={"idle": "x:Y"})
    ran = woven.run("compose")
    assert ran.code == 1
    assert "PLUGIN_CONFLICT" in ran.err
    assert "comes from heald-idle and other" in ran.err


def test_a_verb_gets_a_host_and_its_result_is_the_exit_code(woven: Site) -> None:
    ran = woven.run("loom", "weave", "fine", "--json")
    assert ran.code == 0
    assert json.loads(ran.out.replace("stopped\n", "")) == [{"what": "fine", "rows": ["idle"]}]
    assert ran.out.endswith("stopped\n")
    assert woven.run("loom", "weave", "fault").code == 3


def test_failed_rows_are_told_on_stderr_by_a_verb_that_composes_and_strict_refuses(
    woven: Site,
) -> None:
    woven.plugin("bad", "async def start(self): raise RuntimeError('boom')")
    (woven.home / "heald.toml").write_text(PROFILE.format("bad"))
    ran = woven.run("loom", "weave", "fine")
    assert ran.code == 0
    assert ran.err == (
        "heald: host: row bad (plugin bad, distribution heald-bad) "
        "failed at start: RuntimeError: boom\n"
    )
    ran = woven.run("--strict", "loom", "weave", "fine")
    assert ran.code == 1
    assert "heald: ROWS_FAILED: host: rows failed" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("lom",), "heald: NOT_FOUND: no verb 'lom'; did you mean 'loom'?"),
        (("loom", "weav"), "heald: NOT_FOUND: no verb 'weav'; did you mean 'weave'?"),
        (("plugins", "lits"), "heald: NOT_FOUND: no verb 'lits'; did you mean 'list'?"),
        (("loom", "weave"), "heald: USAGE: Missing argument 'WHAT'; see `heald loom weave --help`"),
        (("loom", "weave", "fine", "--jsn"), "heald: USAGE: No such option"),
        (("loom", "weave", "fine", "--jsn"), "see `heald loom weave --help`"),
        (("--nope",), "heald: USAGE: No such option"),
        (("--home",), "requires an argument; see `heald --help`"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_in_one_line_what_was_meant(
    woven: Site, args: tuple[str, ...], words: str
) -> None:
    ran = woven.run(*args)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_an_error_is_told_on_stderr_with_its_code(woven: Site) -> None:
    ran = woven.run("loom", "crash")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "heald: NOT_FOUND: no thread 'rde'; did you mean 'red'?\n"


def test_help_lists_every_verb_and_no_arguments_is_help(woven: Site) -> None:
    ran = woven.run("--help")
    assert (ran.code, ran.err) == (0, "")
    for word in ("compose", "plugins", "loom", "HEALD_HOME", "--strict"):
        assert word in ran.out
    inner = woven.run("loom", "--help")
    assert re.search(r"weave +Weave WHAT\.", inner.out)
    assert re.search(r"loom +crash, drip, hog, \.\.\.: see `heald loom --help`\n", ran.out)
    bare = woven.run()
    assert bare.code == 2
    assert "compose" in bare.out + bare.err


def test_a_broken_verb_is_shown_as_such_and_fails_alone(woven: Site) -> None:
    woven.install(
        "heald-torn",
        {"torn.py": "import sys\nsys.exit('boom')", "odd.py": "verb = 3"},
        verbs={"torn": "torn:verb", "odd": "odd:verb", "gone.away": "nothing:verb"},
    )
    ran = woven.run("--help")
    assert ran.code == 0
    shown = " ".join(ran.out.split())
    assert (
        "torn (broken: 'torn' of distribution heald-torn does not import: SystemExit: boom" in shown
    )
    assert "odd (broken: 'odd' of distribution heald-torn is not a click command: odd:verb" in shown
    assert "loom" in shown
    for args in (("torn",), ("torn", "--help"), ("torn", "x", "--y=z"), ("gone", "away")):
        failed = woven.run(*args)
        assert (failed.code, failed.out) == (1, ""), args
        assert failed.err.startswith("heald: VERB_BROKEN: ")
        assert "Traceback" not in failed.err
    assert woven.run("loom", "weave", "fine").code == 0


def test_a_verb_whose_name_is_no_path_is_told_of_once_and_passed_over(woven: Site) -> None:
    woven.install("odd", {}, verbs={"": "x:y", "loom.": "x:y", "a..b": "x:y", ".c": "x:y"})
    ran = woven.run("loom", "weave", "fine")
    assert ran.code == 0
    told = [line for line in ran.err.splitlines() if "distribution odd" in line]
    assert len(told) == 4
    assert all(line.startswith("heald: ") for line in told)
    assert not re.search(r"^ +a\b", woven.run("--help").out.partition("Commands:")[2], re.MULTILINE)


def test_a_verb_of_two_distributions_is_an_error_naming_both_and_the_others_work(
    woven: Site,
) -> None:
    woven.install("other-verbs", {}, verbs={"loom.weave": "verbs_of_it:weave"})
    ran = woven.run("loom", "weave", "fine")
    assert ran.code == 1
    assert ran.err.startswith("heald: NAME_CONFLICT: verb 'weave' comes from heald-verbs")
    assert "other-verbs" in ran.err
    assert woven.run("loom", "crash").code == 1
    assert woven.run("plugins", "list").code == 0
    assert "broken" in woven.run("loom", "--help").out


def test_a_verb_that_is_also_a_group_is_an_error_naming_both(woven: Site) -> None:
    woven.install("other-verbs", {}, verbs={"loom": "verbs_of_it:crash"})
    ran = woven.run("loom")
    assert ran.code == 1
    assert "NAME_CONFLICT: verb 'loom' comes from heald-verbs" in ran.err


def test_the_kernels_verbs_cannot_be_taken_over(woven: Site) -> None:
    woven.install(
        "thief",
        {},
        verbs={
            "compose": "verbs_of_it:crash",
            "plugins.list": "verbs_of_it:crash",
            "plugins.count": "verbs_of_it:crash",
            "compose.more": "verbs_of_it:crash",
        },
    )
    for args in (("compose",), ("plugins", "list")):
        ran = woven.run(*args)
        assert ran.code == 0
        assert "NAME_CONFLICT" in ran.err
        assert "heald (the kernel) and thief" in ran.err
    assert woven.run("plugins", "count").code == 1


INTERRUPTED = "heald: interrupted\n"
AGAIN = "heald: still ending what was running; press Ctrl-C {} to stop at once\n"


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize(("verb", "out"), [("wait", "tidied\nstopped\n"), ("polite", "stopped\n")])
def test_an_interrupt_lets_the_verb_and_the_rows_end(
    woven: Site, verb: str, out: str, signum: signal.Signals, code: int
) -> None:
    with woven.start("loom", verb) as process:
        assert process.stdout
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signum)
        told, errors = process.communicate()
    assert (process.returncode, told, errors) == (code, out, INTERRUPTED)


@pytest.mark.parametrize("further", [0, 1, 2])
def test_further_interrupts_are_answered_and_what_was_running_still_ends(
    woven: Site, further: int
) -> None:
    answers = [AGAIN.format("2 more times"), AGAIN.format("once more")][:further]
    with woven.start("loom", "linger") as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "ending\n"
        for answer in answers:
            process.send_signal(signal.SIGINT)
            assert process.stderr.readline() == answer
        told, errors = process.communicate("\n")
    assert (process.returncode, told, errors) == (130, "tidied\nstopped\n", INTERRUPTED)


def test_the_third_further_interrupt_stops_at_once_even_what_blocks_the_event_loop(
    woven: Site,
) -> None:
    with woven.start("loom", "hog") as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "waiting\n"
        for signum in (signal.SIGINT, signal.SIGTERM):  # the second is no further press
            process.send_signal(signum)
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "going on\n"
        told = []
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            told.append(process.stderr.readline())
        process.communicate()
    last = "heald: stopped at once\n"
    assert told == [AGAIN.format("2 more times"), AGAIN.format("once more"), last]
    assert process.returncode == 130


def test_what_a_verb_raises_when_interrupted_is_told_in_one_line(woven: Site) -> None:
    with woven.start("loom", "stumble") as process:
        assert process.stdout
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        told, errors = process.communicate()
    assert (process.returncode, told) == (130, "stopped\n")
    assert errors == f"heald: failed while ending: RuntimeError: boom\n{INTERRUPTED}"


def test_a_hangup_that_whoever_started_us_ignores_stays_ignored(woven: Site) -> None:
    with woven.start("loom", "linger", ignoring=signal.SIGHUP) as process:
        assert process.stdout
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        process.communicate("\n")
    assert process.returncode == 143


def test_an_interrupt_before_anything_is_imported_is_quiet(woven: Site) -> None:
    (woven.path / "click.py").write_text("raise KeyboardInterrupt")
    ran = woven.run("--version")
    assert (ran.code, ran.out, ran.err) == (130, "", INTERRUPTED)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "args", [("plugins", "list"), ("--version",), ("--help",), ("loom", "weave", "fine", "--json")]
)
def test_output_that_cannot_be_written_is_an_error(
    woven: Site, args: tuple[str, ...], unbuffered: str
) -> None:
    woven.plugin("quiet")
    (woven.home / "profiles/default/heald.toml").write_text(PROFILE.format("quiet"))
    with open("/dev/full", "w") as full:  # noqa: PTH123 - it is no file
        ran = subprocess.run(
            [sys.executable, "-m", "heald", *args],
            env=woven.environ({"PYTHONUNBUFFERED": unbuffered}),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ran.returncode == 1
    assert ran.stderr == (
        "heald: OUTPUT_FAILED: standard output cannot be written: No space left on device; "
        "make room, or send it elsewhere\n"
    )


@pytest.mark.parametrize("verb", ["pour", "drip"])
def test_a_reader_that_goes_away_is_no_reason_for_a_traceback(woven: Site, verb: str) -> None:
    woven.plugin("quiet")
    (woven.home / "profiles/default/heald.toml").write_text(PROFILE.format("quiet"))
    with woven.start("loom", verb) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (1, "")


def test_a_home_that_is_a_file_is_refused_with_a_code(woven: Site) -> None:
    file = woven.home / "file"
    file.write_text("")
    ran = woven.run("loom", "weave", "fine", env={"HEALD_HOME": str(file)})
    assert ran.code == 1
    assert ran.err == (
        f"heald: HOME_INVALID: {file} is not a directory; "
        "name a directory with --home or HEALD_HOME\n"
    )
    assert woven.run("--home", str(file), "compose").code == 2
    assert "heald-idle" in woven.run("plugins", "list", env={"HEALD_HOME": str(file)}).out


def test_options_before_the_verb_choose_home_profile_and_patches(woven: Site) -> None:
    other = woven.home / "other"
    (other / "profiles/small").mkdir(parents=True)
    (other / "profiles/small/heald.toml").write_text(
        PROFILE.format("idle").replace('id = "idle"', 'id = "x"')
    )
    ran = woven.run("--home", str(other), "--profile", "small", "compose", "--json")
    assert [row["id"] for row in json.loads(ran.out)] == ["x"]
    unknown = woven.run("--profile", "smal", "--home", str(other), "compose")
    assert unknown.code == 1
    assert "NOT_FOUND: no profile 'smal'; did you mean 'small'?" in unknown.err


def test_the_command_runs_where_its_output_has_no_unicode(woven: Site) -> None:
    env = {**woven.environ(None), "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    ran = subprocess.run(
        [sys.executable, "-m", "heald", "plugins", "list"],
        env=env,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0
    assert os.linesep.encode() in ran.stdout


@pytest.mark.parametrize(("more", "bold"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_is_sent_no_styles_where_no_color_is_asked_for(
    heald_home: Path, more: dict[str, str], *, bold: bool
) -> None:
    told = shown(at_a_terminal(heald_home, "plugins", "list", **more))
    assert ("\x1b[" in told) is bold
