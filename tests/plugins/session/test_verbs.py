"""`heald sessions fork` and `heald sessions rename`, as people and programs run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from heald import Host, Row
from heald.testing import HostFactory
from heald_session import APPEND, LogOffset, SessionId, session_store

NAMES = ("session", "persistence", "projection", "projection-cache", "query")
ROWS = [Row(id=name, plugin=name) for name in NAMES]
ONE = SessionId("aa-one")


def heald(home: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "heald", *words],
        env={**os.environ, "HEALD_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def opened(heald_host: HostFactory) -> Callable[[], AbstractAsyncContextManager[Host]]:
    return lambda: heald_host(rows=ROWS)


@pytest.fixture
async def home(opened: Any, heald_home: Path) -> Path:
    """Return a home with a session of two turns, the second one open, and another session."""
    async with opened() as host:
        store = host.scope.require(session_store)
        session = await store.create(cwd="/loom", id=ONE)
        session.append("turn/start", {"turn": 1})
        session.append("user/message", {"id": "m", "text": "Count the files"}, surface=APPEND)
        session.append("turn/end", {"turn": 1, "outcome": "completed"})
        session.append("turn/start", {"turn": 2})
        session.append("user/message", {"id": "n", "text": "Again"}, surface=APPEND)
        other = await store.create(cwd="/loom", id=SessionId("ab-two"))
        other.append("turn/start", {"turn": 1})
    return heald_home


async def test_a_fork_is_made_of_the_first_events_and_its_id_is_printed(
    opened: Any, home: Path
) -> None:
    id_ = heald(home, "sessions", "fork", "aa", "--at", "3").stdout.strip()
    found = json.loads(heald(home, "sessions", "fork", "aa-one", "--at", "3", "--json").stdout)
    assert found == {"id": found["id"], "parent_session": "aa-one"}
    assert found["id"] != id_
    async with opened() as host:
        for made in (id_, found["id"]):
            fork = await host.scope.require(session_store).resume(SessionId(made))
            assert (fork.header.parent_session, fork.cut, fork.end) == ("aa-one", 3, 3)
            assert fork.history()[0].text == "Count the files"


def test_a_cut_that_cannot_be_made_is_explained_and_leaves_nothing(home: Path) -> None:
    before = sorted(path.name for path in (home / "sessions").iterdir())
    inside = heald(home, "sessions", "fork", "aa", "--at", "2", code=1).stderr
    assert "CUT_INVALID" in inside
    assert "a turn is open there; cut at 0 or 3" in inside
    whole = heald(home, "sessions", "fork", "aa", code=1).stderr
    assert "a turn is open there; cut at 3" in whole
    beyond = heald(home, "sessions", "fork", "aa", "--at", "6", code=1).stderr
    assert "the log has 5 events" in beyond
    heald(home, "sessions", "fork", "aa", "--at", "0", code=2)
    assert "SESSION_NOT_FOUND" in heald(home, "sessions", "fork", "zz", code=1).stderr
    assert "SESSION_ID_AMBIGUOUS" in heald(home, "sessions", "fork", "a", code=1).stderr
    assert sorted(path.name for path in (home / "sessions").iterdir()) == before


async def test_a_renamed_session_is_listed_by_its_new_title(opened: Any, home: Path) -> None:
    assert heald(home, "sessions", "rename", "ab", "Mending the loom").stdout == ""
    listed = json.loads(heald(home, "sessions", "list", "--json").stdout)
    titles = {item["id"]: item["projections"]["values"]["title"] for item in listed}
    assert titles == {"aa-one": {"text": "Count the files"}, "ab-two": {"text": "Mending the loom"}}
    assert "visible character" in heald(home, "sessions", "rename", "ab", "  ", code=2).stderr
    async with opened() as host:
        session = await host.scope.require(session_store).resume(SessionId("ab-two"))
        events = [event async for event in session.read(LogOffset(1))]
    assert [event.type for event in events] == ["turn/end", "session/renamed"]
    assert events[-1].data == {"title": "Mending the loom"}


async def test_a_session_that_is_being_written_is_not_renamed(opened: Any, home: Path) -> None:
    async with opened() as host:
        await (await host.scope.require(session_store).resume(ONE)).flush()
        refused = heald(home, "sessions", "rename", "aa", "Mine", code=1).stderr
        assert "SESSION_BUSY" in refused
        forked = heald(home, "sessions", "fork", "aa").stdout.strip()
    async with opened() as host:
        assert (await host.scope.require(session_store).resume(SessionId(forked))).end == 6


async def test_an_error_is_shown_and_not_obeyed_by_a_terminal(
    opened: Any, heald_home: Path
) -> None:
    async with opened() as host:
        store = host.scope.require(session_store)
        for name in ("x\x07one", "x\x07two"):
            session = await store.create(cwd="/loom", id=SessionId(name))
            session.append("turn/start", {"turn": 1})
    told = heald(heald_home, "sessions", "fork", "x", code=1).stderr
    assert "x\\x07one" in told
    assert "\x07" not in told
