"""`heald sessions list`, `show` and `tree`, as people and programs run them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.terminals import at_a_terminal, shown

from heald import HealdError, Row
from heald.testing import HostFactory
from heald.verbs import Invocation
from heald_persistence import session_persistence
from heald_query.transcript import visible
from heald_query.verbs import list_sessions, show_session
from heald_session import (
    APPEND,
    Event,
    Header,
    LogOffset,
    NewEvent,
    Seq,
    SessionId,
    SessionNotFound,
    session_store,
)

ROWS = [
    Row(id=name, plugin=name)
    for name in ("session", "persistence", "projection", "projection-cache", "query")
]


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "heald", *words],
        env={**os.environ, "HEALD_HOME": str(home), "TZ": "UTC"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
async def home(heald_host: HostFactory, heald_home: Path) -> Path:
    """Return a home that holds a session, a later one, and a child of a subagent's."""
    async with heald_host(rows=ROWS) as host:
        host.now = iter(range(1_700_000_000_000, 1_800_000_000_000, 1000)).__next__
        store = host.scope.require(session_store)
        first = await store.create(cwd="/loom", id=SessionId("aa-first"), agent_preset="standard")
        first.append("turn/start", {"turn": 1})
        first.append("user/message", {"id": "m", "text": "Count\nthe files"}, surface=APPEND)
        call = {"id": "c", "name": "glob", "arguments": {"pattern": "*"}}
        usage = {"input_tokens": 12, "output_tokens": 3}
        answer = {"text": "Looking", "tool_calls": [call], "usage": usage}
        first.append("assistant/message", answer, surface=APPEND)
        result = {"call_id": "c", "name": "glob", "text": "a\x1b[31m\nb", "is_error": True}
        first.append("tool/result", result, surface=APPEND)
        first.append("turn/end", {"turn": 1, "outcome": "aborted", "cause": "Ctrl-C"})
        second = await store.create(cwd="/other", id=SessionId("ab-second"))
        second.append("turn/start", {"turn": 1})
        child = await store.create(
            cwd="/loom",
            id=SessionId("child"),
            parent_session=first.id,
            origin="subagent",
            delegation_depth=1,
        )
        child.append("turn/start", {"turn": 1})
    return heald_home


def test_people_see_top_level_sessions_newest_first(home: Path) -> None:
    done = run(home, "sessions", "list")
    assert done.returncode == 0
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["id", "created", "kept", "preset", "turns", "title", "cwd"]
    assert [line.split()[0] for line in lines] == ["ab-second", "aa-first"]
    created, kept, preset, turns = lines[1].split()[1:5]
    assert created.startswith("2023-11-14T22:13:2")
    assert (kept, preset, turns) == ("stored", "standard", "1")
    assert "Count  /loom" in lines[1]
    assert "\x1b" not in done.stdout


def test_all_shows_subagents_too(home: Path) -> None:
    done = run(home, "sessions", "list", "--all")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == [
        "child",
        "ab-second",
        "aa-first",
    ]


def test_programs_get_an_array_of_objects(home: Path) -> None:
    found: list[dict[str, Any]] = json.loads(run(home, "sessions", "list", "--json").stdout)
    assert [one["id"] for one in found] == ["ab-second", "aa-first"]
    last = found[-1]
    projections = last.pop("projections")
    created = last.pop("created_at")
    assert 1_700_000_000_000 <= created < 1_700_000_060_000
    assert last == {
        "id": "aa-first",
        "position": f"{created}.aa-first",
        "cwd": "/loom",
        "parent_session": None,
        "origin": None,
        "delegation_depth": 0,
        "preset": "standard",
        "live": False,
        "stored": True,
        "problem": None,
    }
    assert projections["as_of_seq"] == 4
    assert projections["values"]["title"] == {"text": "Count"}
    assert projections["values"]["sessionStats"]["turns"] == 1
    every = json.loads(run(home, "sessions", "list", "--all", "--json").stdout)
    assert every[0]["parent_session"] == "aa-first"
    assert every[0]["origin"] == "subagent"


def test_a_broken_session_is_told_of_and_the_others_are_listed(home: Path) -> None:
    (home / "sessions" / "ab-second" / "session.json").write_text("{")
    done = run(home, "sessions", "list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == ["aa-first"]
    assert "ab-second: " in done.stderr
    found = json.loads(run(home, "sessions", "list", "--json").stdout)
    assert [(one["id"], bool(one["problem"])) for one in found] == [
        ("aa-first", False),
        ("ab-second", True),
    ]


def test_an_empty_list_says_how_to_begin(heald_home: Path) -> None:
    done = run(heald_home, "sessions", "list")
    assert (done.returncode, "heald run" in done.stdout) == (0, True)
    assert json.loads(run(heald_home, "sessions", "list", "--json").stdout) == []


def test_show_tells_a_log_with_messages_in_full(home: Path) -> None:
    done = run(home, "sessions", "show", "aa-first")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line.split()[2] for line in lines if not line.startswith(" " * 8)] == [
        "turn/start",
        "user/message",
        "assistant/message",
        "tool/result",
        "turn/end",
    ]
    assert "        Count" in lines
    assert "        the files" in lines
    assert '        -> glob {"pattern": "*"}' in lines
    assert "        a\\x1b[31m" in lines
    assert "stop, 12 tokens in, 3 out" in done.stdout
    assert "glob failed" in done.stdout
    assert lines[-1].endswith("turn 1 aborted: Ctrl-C")


def test_show_gives_programs_the_stored_events(home: Path) -> None:
    found = json.loads(
        run(home, "sessions", "show", "aa", "--json", "--types", "turn/start,user/message").stdout
    )
    assert [event["seq"] for event in found] == [0, 1]
    time = found[1].pop("time")
    assert isinstance(time, int)
    assert found[1] == {
        "seq": 1,
        "type": "user/message",
        "data": {"id": "m", "text": "Count\nthe files"},
        "surface": {"op": "append"},
    }


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ("a", "SESSION_ID_AMBIGUOUS", "aa-first"),
        ("nothing-like-it", "SESSION_NOT_FOUND", "aa-first"),
        ("aa-frist", "SESSION_NOT_FOUND", "aa-first"),
    ],
)
def test_an_id_that_names_no_one_session_is_refused(
    home: Path, given: str, code: str, says: str
) -> None:
    done = run(home, "sessions", "show", given)
    assert (done.returncode, done.stdout) == (1, "")
    assert code in done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


async def test_an_id_that_no_terminal_can_show_is_typed_as_it_is_shown(
    heald_host: HostFactory, heald_home: Path
) -> None:
    async with heald_host(rows=ROWS) as host:
        for name in ("odd\x1b[2J", "odder"):
            await host.scope.require(session_store).create(
                cwd="/", id=SessionId(name), first=[NewEvent("session/renamed", {"title": name})]
            )
    listed = (await asyncio.to_thread(run, heald_home, "sessions", "list")).stdout
    assert "odd\\x1b[2J" in listed
    words = ("sessions", "show", "odd\\x1b[2J", "--json")
    (event,) = json.loads((await asyncio.to_thread(run, heald_home, *words)).stdout)
    assert event["data"] == {"title": "odd\x1b[2J"}


def seqs(done: subprocess.CompletedProcess[str]) -> list[int]:
    return [int(line[:5]) for line in done.stdout.splitlines() if line[:5].strip().isdigit()]


def test_show_takes_a_part_of_a_log(home: Path) -> None:
    words = ("--from", "1", "--limit", "2")
    assert seqs(run(home, "sessions", "show", "aa", *words)) == [1, 2]
    found = json.loads(run(home, "sessions", "show", "aa", "--json", "--tail", "2").stdout)
    assert [event["seq"] for event in found] == [3, 4]
    assert json.loads(run(home, "sessions", "show", "aa", "--json", "--tail", "0").stdout) == []


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("--from 6", 1, "OFFSET_BEYOND_END"),
        ("--tail 1 --from 1", 2, "--tail"),
        ("--limit 1 --follow", 2, "--limit"),
    ],
)
def test_show_refuses_what_it_cannot_do(home: Path, words: str, code: int, says: str) -> None:
    done = run(home, "sessions", "show", "aa", *words.split())
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def following(home: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "heald", "sessions", "show", *words],
        env={**os.environ, "HEALD_HOME": str(home), "TZ": "UTC"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("as_json", [False, True])
async def test_show_follows_what_another_process_writes_until_its_turn_ends(
    heald_host: HostFactory, heald_home: Path, *, as_json: bool
) -> None:
    async with heald_host(rows=ROWS) as host:
        session = await host.scope.require(session_store).create(cwd="/", id=SessionId("running"))
        session.append("turn/start", {"turn": 1})
        await session.flush()
        words = ("running", "--until-turn-end", *(("--json",) if as_json else ()))
        follower = await asyncio.to_thread(following, heald_home, *words)
        assert follower.stdout is not None
        line = await asyncio.to_thread(follower.stdout.readline)
        assert "turn/start" in line
        session.append("inbox/message", {"id": "a", "text": "More"})
        await session.flush()
        line = await asyncio.to_thread(follower.stdout.readline)
        assert "inbox/message" in line
        if as_json:
            assert json.loads(line)["data"]["text"] == "More"
        session.append("turn/end", {"turn": 1, "outcome": "completed"})
        await session.flush()
        out, err = await asyncio.to_thread(follower.communicate, None, 60)
        assert "turn/end" in out
        assert (follower.returncode, err) == (0, "")


def test_following_ends_when_it_is_interrupted(home: Path) -> None:
    follower = following(home, "ab-second", "--follow")
    assert follower.stdout is not None
    assert "turn/start" in follower.stdout.readline()
    follower.send_signal(signal.SIGINT)
    out, err = follower.communicate(timeout=60)
    assert (follower.returncode, out) == (130, "")
    assert "Traceback" not in err


MEASURED = """
import resource, runpy, sys
sys.argv = ["heald", "sessions", "show", sys.argv[1], "--json"]
try:
    runpy.run_module("heald", run_name="__main__")
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


async def test_a_long_log_is_printed_without_being_in_memory(
    heald_host: HostFactory, heald_home: Path
) -> None:
    async with heald_host(rows=ROWS) as host:
        storage = host.scope.require(session_persistence)
        for name, count in (("long", 100_000), ("short", 1)):
            header = Header(version=1, id=SessionId(name), log_id=name, created_at=1)
            writer = await storage.create(header, LogOffset(0))
            data = msgspec.Raw(msgspec.json.encode({"text": "x" * 700}))
            for start in range(0, count, 10_000):
                seqs = range(start, min(count, start + 10_000))
                writer.append([Event(Seq(n), "acme/note", n, data) for n in seqs])
                await writer.flush()
            await writer.close()

    def peak(name: str) -> tuple[int, int]:
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, name],
            env={**os.environ, "HEALD_HOME": str(heald_home)},
            capture_output=True,
            check=True,
        )
        found = done.stdout.count(b'"acme/note"')
        return found, int(done.stderr.split()[-1])

    (printed, much), (_, little) = [await asyncio.to_thread(peak, n) for n in ("long", "short")]
    assert printed == 100_000
    assert much - little < 40 * 1024  # KiB, of 70 MB


def test_a_person_at_a_terminal_gets_a_pager(home: Path) -> None:
    out = shown(at_a_terminal(home, "sessions", "show", "aa", PAGER="sed s/^/paged:/"))
    lines = out.splitlines()
    assert lines[0].startswith("paged:    0")
    assert len(lines) > 5
    assert all(line.startswith("paged:") for line in lines)
    assert lines[-1] != "paged:"


def test_the_tree_shows_which_session_came_of_which(home: Path) -> None:
    done = run(home, "sessions", "tree")
    assert done.stdout.splitlines() == ["aa-first  Count", "  child  subagent", "ab-second"]
    assert run(home, "sessions", "tree", "chi").stdout.splitlines() == ["child  subagent"]
    found = json.loads(run(home, "sessions", "tree", "--json").stdout)
    assert [(one["id"], one["depth"], one["relation"], one["title"]) for one in found] == [
        ("aa-first", 0, None, "Count"),
        ("child", 1, "subagent", None),
        ("ab-second", 0, None, None),
    ]
    assert found[1]["parent_session"] == "aa-first"


def test_an_empty_tree_says_how_to_begin(heald_home: Path) -> None:
    done = run(heald_home, "sessions", "tree")
    assert (done.returncode, "heald run" in done.stdout) == (0, True)
    assert json.loads(run(heald_home, "sessions", "tree", "--json").stdout) == []


def test_a_damaged_log_is_shown_with_the_gap_in_its_place(home: Path) -> None:
    tail = home / "sessions" / "aa-first" / "tail.jsonl"
    data = tail.read_bytes()
    tail.write_bytes(data.replace(b"the files", b"the_files"))
    done = run(home, "sessions", "show", "aa-first")
    assert done.returncode == 1
    assert seqs(done) == [0, 2, 3, 4]
    gap = done.stdout.splitlines()[1]
    assert "1 event from 1 on cannot be read" in gap
    place = data.index(b'{"seq":1')
    assert f"tail.jsonl at byte {place}" in gap
    assert "heald sessions verify aa-first" in done.stderr
    found = json.loads(run(home, "sessions", "show", "aa-first", "--json").stdout)
    assert [one.get("seq") for one in found] == [0, None, 2, 3, 4]
    assert found[1]["damage"]["kind"] == "line"


def test_a_log_whose_header_is_damaged_says_so(home: Path) -> None:
    (home / "sessions" / "ab-second" / "session.json").write_bytes(b"{}\n")
    done = run(home, "sessions", "show", "ab-second")
    assert (done.returncode, done.stdout) == (1, "")
    assert "SESSION_DAMAGED" in done.stderr


def invoked(home: Path, command: click.Command, *words: str) -> Result:
    """Run a verb in this process, which is quicker where it is run many times."""
    return CliRunner().invoke(command, words, obj=Invocation(named_home=home))


def listed(home: Path, *words: str) -> list[str]:
    done = invoked(home, list_sessions, *words)
    assert done.exit_code == 0, done.stderr
    return [line.split()[0] for line in done.stdout.splitlines()[1:]]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("--cwd /loom", ["aa-first"]),
        ("--cwd / --all", ["child", "ab-second", "aa-first"]),
        ("--preset standard", ["aa-first"]),
        ("--parent aa", ["child"]),
        ("--order oldest --all", ["aa-first", "ab-second", "child"]),
        ("--since 2023-11-14 --until 2023-11-15T00:00", ["ab-second", "aa-first"]),
        ("--order activity", ["ab-second", "aa-first"]),
    ],
)
def test_a_list_takes_filters_and_orders(home: Path, words: str, wanted: list[str]) -> None:
    assert listed(home, *words.split()) == wanted


@pytest.mark.parametrize("words", ["--until 2001-01-01", "--since 1h", "--cwd /nowhere"])
def test_a_list_that_fits_nothing_says_so(home: Path, words: str) -> None:
    done = invoked(home, list_sessions, *words.split())
    assert (done.exit_code, done.stdout) == (0, "No session fits.\n")
    assert json.loads(invoked(home, list_sessions, "--json", *words.split()).stdout) == []


def test_a_list_of_subagents_alone_says_how_many_there_are(home: Path) -> None:
    done = invoked(
        home,
        list_sessions,
        "--since",
        "2023-11-14",
        "--cwd",
        "/loom",
        "--until",
        "2023-11-14T22:13:28",
    )
    assert "aa-first" in done.stdout
    (home / "sessions" / "aa-first" / "session.json").unlink()
    done = invoked(home, list_sessions, "--cwd", "/loom")
    assert done.stdout == "No sessions but 1 of subagents; `--all` shows them.\n"


def test_pages_of_a_list_follow_one_another(home: Path) -> None:
    seen, words = [], ["--all", "--limit", "1"]
    while words:
        done = invoked(home, list_sessions, *words)
        seen += [line.split()[0] for line in done.stdout.splitlines()[1:]]
        place = done.stderr.partition("add `--after ")[2].partition("`")[0]
        words = ["--all", "--limit", "1", "--after", place] if place else []
    assert seen == ["child", "ab-second", "aa-first"]
    found = json.loads(invoked(home, list_sessions, "--json", "--limit", "1").stdout)
    assert [one["id"] for one in found] == ["ab-second"]
    done = invoked(home, list_sessions, "--order", "activity", "--limit", "1")
    assert "--limit" in done.stderr


def test_people_choose_the_columns(home: Path) -> None:
    columns = "title,id,parent,origin,depth,prompt"
    done = invoked(home, list_sessions, "--all", "--columns", columns)
    head, child, *_ = done.stdout.splitlines()
    assert head.split() == ["title", "id", "parent", "origin", "depth", "prompt"]
    assert child.split() == ["-", "child", "aa-first", "subagent", "1", "-"]
    done = invoked(home, list_sessions, "--columns", "id,active")
    assert done.stdout.splitlines()[1].split()[1].startswith("2023-11-14T22:13:2")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--columns id,nam", ["'nam'", "active", "cwd", "id", "title", "turns"]),
        ("--since yesterday", ["2026-07-01", "2h"]),
        ("--after x", ["position"]),
        ("--order activity --after 1.a", ["--after"]),
        ("--json --columns id", ["--json"]),
        ("--limit 0", ["--limit"]),
    ],
)
def test_a_list_refuses_what_it_cannot_do(home: Path, words: str, says: list[str]) -> None:
    done = invoked(home, list_sessions, *words.split())
    assert (done.exit_code, done.stdout) == (2, "")
    assert all(word in done.stderr for word in says)


def test_an_unknown_parent_is_not_found_and_one_that_is_gone_still_has_children(home: Path) -> None:
    assert isinstance(invoked(home, list_sessions, "--parent", "nobody").exception, SessionNotFound)
    run(home, "sessions", "delete", "aa-first")
    assert listed(home, "--parent", "aa-first") == ["child"]


def test_show_tells_a_projection_just_after_an_event(home: Path) -> None:
    done = invoked(home, show_session, "aa", "--projection", "title")
    assert (done.exit_code, done.stdout.split()) == (0, ["title:", "{", '"text":', '"Count"', "}"])
    words = ("--projection", "title", "--projection", "sessionStats", "--json")
    for at, title in (("0", None), ("1", {"text": "Count"})):
        found = json.loads(invoked(home, show_session, "aa", "--at", at, *words).stdout)
        assert (found["id"], found["as_of_seq"]) == ("aa-first", int(at))
        assert found["values"]["title"] == title
        assert found["values"]["sessionStats"]["turns"] == 1


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("--projection titel", 1, ["'titel'", "title", "sessionStats"]),
        ("--projection title --at 5", 1, ["no event 5", "its last is 4"]),
        ("--projection title --tail 1", 2, ["--projection"]),
        ("--at 1", 2, ["--projection"]),
    ],
)
def test_show_says_which_projections_and_events_there_are(
    home: Path, words: str, code: int, says: list[str]
) -> None:
    done = invoked(home, show_session, "aa", *words.split())
    assert (done.exit_code, done.stdout) == (code, "")
    told = str(done.exception) if isinstance(done.exception, HealdError) else done.stderr
    assert all(word in told for word in says)


def test_a_misspelt_type_is_told_from_one_that_does_not_occur(home: Path) -> None:
    done = invoked(home, show_session, "aa", "--types", "user/mesage")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "did you mean 'user/message'" in done.stderr
    done = invoked(home, show_session, "aa", "--types", "session/renamed,turn/start")
    assert ([line[:5].strip() for line in done.stdout.splitlines()], done.stderr) == (["0"], "")


async def test_a_foreign_type_that_occurs_is_shown_without_a_word(
    heald_host: HostFactory, heald_home: Path
) -> None:
    async with heald_host(rows=ROWS) as host:
        storage = host.scope.require(session_persistence)
        header = Header(version=1, id=SessionId("one"), log_id="one", created_at=1)
        writer = await storage.create(header, LogOffset(0))
        writer.append([Event(Seq(0), "acme/note", 1, msgspec.Raw(b"{}"))])
        await writer.close()
    done = await asyncio.to_thread(
        run, heald_home, "sessions", "show", "one", "--types", "acme/note"
    )
    assert (seqs(done), done.stderr) == ([0], "")


def test_a_page_behind_the_last_session_says_so(home: Path) -> None:
    shown = json.loads(invoked(home, list_sessions, "--json").stdout)
    done = invoked(home, list_sessions, "--after", shown[-1]["position"])
    assert (done.exit_code, done.stdout) == (0, "No session comes after that one.\n")


def test_what_could_reorder_a_line_is_shown_and_joined_pictures_stay_whole() -> None:
    assert visible("a\u202eb\x1b[2J\tc\n👩\u200d🚀") == "a\\u202eb\\x1b[2J\tc\n👩\u200d🚀"
