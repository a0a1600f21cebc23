"""`heald search`, as people and programs run it."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.terminals import at_a_terminal, shown

from heald import Row
from heald.testing import CommandRunner, HostFactory
from heald_query import SearchFilter, session_query
from heald_session import APPEND, SessionId, session_store

ROWS = [
    Row(id=name, plugin=name)
    for name in ("session", "persistence", "projection", "projection-cache", "query")
]


@pytest.fixture
async def home(heald_host: HostFactory, heald_home: Path) -> Path:
    """Return a home that holds a session, its fork, and a child of a subagent's."""
    async with heald_host(rows=ROWS) as host:
        host.now = iter(range(1_700_000_000_000, 1_800_000_000_000, 1000)).__next__
        store = host.scope.require(session_store)
        first = await store.create(cwd="/loom", id=SessionId("aa-first"))
        first.append("user/message", {"id": "m", "text": "Wind\nthe copper wire"}, surface=APPEND)
        first.append(
            "assistant/message", {"text": "copper \x1b[31mwound\x1b[0m\x07"}, surface=APPEND
        )
        await first.flush()
        await store.fork(SessionId("aa-first"), id=SessionId("fork"))
        child = await store.create(cwd="/loom", id=SessionId("child"), origin="subagent")
        child.append("user/message", {"id": "m", "text": "copper, for a child"}, surface=APPEND)
    return heald_home


def hits(heald_cli: CommandRunner, *words: str) -> list[tuple[str, int]]:
    found = json.loads(heald_cli("search", "--json", *words).stdout)
    return [(hit["session"], hit["seq"]) for hit in found["hits"]]


@pytest.mark.usefixtures("home")
def test_top_level_sessions_are_searched_by_default_and_children_by_option(
    heald_cli: CommandRunner,
) -> None:
    listed = {
        option: {one["id"] for one in json.loads(heald_cli("sessions", "list", *option).stdout)}
        for option in (("--json",), ("--json", "--all"))
    }
    own = {("aa-first", 0), ("aa-first", 1)}
    assert set(hits(heald_cli, "copper")) == own
    assert set(hits(heald_cli, "copper", "--children")) == own | {("child", 0)}
    assert listed["--json",] == {"aa-first", "fork"}
    assert listed["--json", "--all"] == {"aa-first", "fork", "child"}


@pytest.mark.usefixtures("home")
async def test_the_verb_and_the_service_count_the_same_hits(
    heald_host: HostFactory, heald_cli: CommandRunner
) -> None:
    async with heald_host(rows=ROWS) as host:
        query = host.scope.require(session_query)
        every = await query.search("copper", SearchFilter(inherited=False), limit=1)
        own = await query.search("copper", SearchFilter(inherited=False, subagents=False), limit=1)
    for page, words in ((every, ("--children",)), (own, ())):
        done = await asyncio.to_thread(heald_cli, "search", "copper", "--json", *words)
        found = json.loads(done.stdout)
        assert found["total"] == page.total == len(found["hits"])


@pytest.mark.usefixtures("home")
def test_a_session_that_is_named_is_searched_with_what_it_inherited(
    heald_cli: CommandRunner,
) -> None:
    assert set(hits(heald_cli, "copper", "--session", "fo")) == {("fork", 0), ("fork", 1)}
    failed = heald_cli("search", "copper", "--session", "nobody", code=1)
    assert "SESSION_NOT_FOUND" in failed.stderr


@pytest.mark.usefixtures("home")
def test_types_and_times_narrow_the_search(heald_cli: CommandRunner) -> None:
    assert hits(heald_cli, "copper", "--type", "assistant") == [("aa-first", 1)]
    either = ("--type", "assistant", "--type", "user")
    found = hits(heald_cli, "copper", *either, "--since", "2023-11-14T22:13:22Z")
    assert found == [("aa-first", 1)]
    assert "not a date like" in heald_cli("search", "x", "--since", "soon", code=2).stderr


@pytest.mark.usefixtures("home")
def test_a_hit_is_printed_with_the_command_that_opens_it(heald_cli: CommandRunner) -> None:
    out = heald_cli("search", "wire", "wind", env={"TZ": "UTC"}).stdout
    assert out.splitlines() == [
        f"Wind  {datetime.fromtimestamp(1_700_000_001, UTC).isoformat()}  user",
        "    Wind the copper wire",
        "    heald sessions show aa-first --from 0",
    ]


@pytest.mark.usefixtures("home")
def test_control_characters_are_shown_and_not_obeyed(heald_cli: CommandRunner) -> None:
    out = heald_cli("search", "wound").stdout
    assert "\x1b" not in out
    assert r"copper wound\x07" in out


@pytest.mark.usefixtures("home")
def test_more_hits_than_are_shown_are_counted(heald_cli: CommandRunner) -> None:
    out = heald_cli("search", "copper", "--limit", "1").stdout
    assert out.splitlines()[-1] == "1 of 2; `--limit` shows more of them."


async def test_a_time_that_no_calendar_has_is_shown_as_it_is(
    heald_host: HostFactory, heald_cli: CommandRunner
) -> None:
    async with heald_host(rows=ROWS) as host:
        host.now = lambda: 2**53
        session = await host.scope.require(session_store).create(cwd=None, id=SessionId("odd"))
        session.append("user/message", {"id": "m", "text": "copper"}, surface=APPEND)
    for verb in (("search", "copper"), ("sessions", "list"), ("sessions", "show", "odd")):
        assert "9007199254740992 ms" in heald_cli(*verb).stdout


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("typed", ["", "***", "( + )"])
def test_what_has_no_word_is_told_apart_from_a_word_that_is_not_found(
    heald_cli: CommandRunner, typed: str
) -> None:
    said = heald_cli("search", typed).stdout
    assert said == f"There is no word in {typed!r} to search for.\n"


@pytest.mark.usefixtures("home")
def test_finding_nothing_says_what_was_searched_and_what_could_be_left_out(
    heald_cli: CommandRunner,
) -> None:
    done = heald_cli("search", "bronze wire", "--type", "tool")
    assert done.stdout.strip() == (
        "Nothing found for bronze wire in all sessions but those of subagents, written by tool."
        " Leave out --type to search more. `--children` searches those too."
        " Every word must be in one text; try fewer."
    )


@pytest.mark.usefixtures("home")
def test_json_has_the_snippet_and_where_its_marks_are(heald_cli: CommandRunner) -> None:
    [hit] = json.loads(heald_cli("search", "wire", "--json").stdout)["hits"]
    assert hit == {
        "session": "aa-first",
        "seq": 0,
        "time": 1_700_000_001_000,
        "role": "user",
        "snippet": {"text": "Wind the copper wire", "marks": [[16, 20]]},
    }


def test_json_says_how_many_there_are_and_what_was_not_searched(
    home: Path, heald_cli: CommandRunner
) -> None:
    (home / "sessions" / "fork" / "session.json").write_text("{")
    page = json.loads(heald_cli("search", "copper", "--limit", "1", "--json").stdout)
    assert (len(page["hits"]), page["total"], page["unread"]) == (1, 2, ["fork"])
    page = json.loads(heald_cli("search", "bronze", "--json").stdout)
    assert page == {"hits": [], "total": 0, "unread": ["fork"]}


def test_a_session_that_cannot_be_read_is_told_of(home: Path, heald_cli: CommandRunner) -> None:
    (home / "sessions" / "fork" / "session.json").write_text("{")
    done = heald_cli("search", "copper")
    assert "Not or not wholly searched: fork;" in done.stderr


def test_what_was_found_is_highlighted_on_a_terminal_only(
    home: Path, heald_cli: CommandRunner
) -> None:
    assert "\x1b[33m\x1b[1mcopper\x1b[0m" in shown(at_a_terminal(home, "search", "copper"))
    assert "\x1b[33m" not in shown(at_a_terminal(home, "search", "copper", NO_COLOR="1"))
    assert "\x1b" not in heald_cli("search", "copper").stdout
