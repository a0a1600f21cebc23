"""`heald sessions list` and `heald sessions show`, as people and programs run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from heald import Row
from heald.testing import HostFactory
from heald_session import APPEND, SessionId, session_store

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
        first = await store.create(cwd="/work", id=SessionId("aa-first"), agent_preset="standard")
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
            cwd="/work",
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
    assert "Count  /work" in lines[1]
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
        "cwd": "/work",
        "parent_session": None,
        "origin": None,
        "delegation_depth": 0,
        "agent_preset": "standard",
        "live": False,
        "stored": True,
        "problem": None,
    }
    assert projections["as_of_seq"] == 4
    assert projections["values"]["title"] == {"text": "Count"}
    assert projections["values"]["sessionStats"]["input_tokens"] == 12
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


def test_a_damaged_session_cannot_be_shown_and_says_why(home: Path) -> None:
    (home / "sessions" / "ab-second" / "tail.jsonl").write_bytes(b"{}\n")
    done = run(home, "sessions", "show", "ab-second")
    assert (done.returncode, done.stdout) == (1, "")
    assert "SESSION_DAMAGED" in done.stderr
