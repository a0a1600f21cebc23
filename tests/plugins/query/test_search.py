"""The search through a real host: which sessions and texts it covers, and how it stays so."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heald import Cancelled, CancelToken, Host, Row
from heald.testing import HostFactory
from heald_persistence import session_persistence
from heald_query import Role, SearchFilter, SearchPage, Snippet, session_query
from heald_query.search.snippets import snippet
from heald_query.search.typed_text import Typed
from heald_session import APPEND, Session, SessionId, session_store

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]


async def made(host: Host, name: str, *texts: str, cwd: str = "/loom", **facts: Any) -> Session:
    """Make a live session with prompts."""
    store = host.scope.require(session_store)
    session = await store.create(cwd=cwd, id=SessionId(name), **facts)
    for text in texts:
        say(session, text)
    await session.flush()
    return session


def say(session: Session, text: str) -> None:
    session.append("user/message", {"id": "m", "text": text}, surface=APPEND)


async def stored(host: Host, name: str, *texts: str, **facts: Any) -> None:
    session = await made(host, name, *texts, **facts)
    await host.scope.require(session_store).dispose(session)


async def search(host: Host, text: str, limit: int = 50, **where: Any) -> SearchPage:
    return await host.scope.require(session_query).search(text, SearchFilter(**where), limit=limit)


async def places(host: Host, text: str, **where: Any) -> list[tuple[str, int]]:
    return [(hit.session, hit.seq) for hit in (await search(host, text, **where)).hits]


def index_of(home: Path) -> Path:
    return home / "cache" / "search-v1.sqlite"


def answer(session: Session, text: str, *calls: dict[str, Any]) -> None:
    data = {"text": text, "tool_calls": [{"id": str(n)} | c for n, c in enumerate(calls)]}
    session.append("assistant/message", data, surface=APPEND)


async def test_a_hit_says_where_when_and_by_whom_it_was_written(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        session = await made(host, "one", "Lift the heald")
        answer(session, "lifting", {"name": "lift", "arguments": {"wire": ["copper", 7]}})
        result = {"call_id": "0", "name": "lift", "text": "it is up"}
        session.append("tool/result", result, surface=APPEND)
        await session.flush()
        [event] = [event for event in session.hot() if event.seq == 0]
        [hit] = (await search(host, "heald")).hits
        assert (hit.session, hit.seq, hit.time, hit.role) == ("one", 0, event.time, "user")
        assert hit.snippet.text == "Lift the heald"
        assert [hit.snippet.text[a:b] for a, b in hit.snippet.marks] == ["heald"]
        for typed, role, seq in (("copper 7", "assistant", 1), ("up", "tool", 2)):
            [hit] = (await search(host, typed)).hits
            assert (hit.role, hit.seq) == (role, seq)


async def test_a_word_is_found_before_the_turn_ends_and_before_a_later_flush(
    open_rows: OpenHost,
) -> None:
    async with open_rows() as host:
        session = await made(host, "one", "copper")
        assert await places(host, "copper") == [("one", 0)]
        session.append("turn/start", {"turn": 1})
        say(session, "bronze")
        await session.flush()
        say(session, "silver")
        assert await places(host, "bronze") == [("one", 2)]
        await session.flush()
        assert await places(host, "silver") == [("one", 3)]


async def test_sessions_that_are_kept_nowhere_are_found_while_they_live(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows(without=("persistence",)) as host:
        session = await made(host, "one")
        say(session, "copper")
        assert await places(host, "copper") == [("one", 0)]
        await host.scope.require(session_store).dispose(session)
        assert await places(host, "copper") == []
    assert not index_of(heald_home).exists()


async def test_sessions_of_another_backend_are_found(heald_host: HostFactory) -> None:
    names = ("session", "persistence-memory", "projection", "query")
    async with heald_host(rows=[Row(id=name, plugin=name) for name in names]) as host:
        await stored(host, "one", "copper")
        await made(host, "two", "copper")
        assert sorted(await places(host, "copper")) == [("one", 0), ("two", 0)]


async def test_deleting_the_index_changes_no_answer(open_rows: OpenHost, heald_home: Path) -> None:
    texts = [f"copper wire {n} {'heald ' * (n % 4)}" for n in range(30)]
    pages: list[list[SearchPage]] = []
    for _ in range(2):
        async with open_rows() as host:
            if not pages:
                await stored(host, "one", *texts)
                await search(host, "copper")
                await stored(host, "two", *texts)
            pages.append([await search(host, typed) for typed in ("heald", "copper wire 7")])
        for file in (heald_home / "cache").glob("search*"):
            file.unlink()
    assert pages[0] == pages[1]
    assert pages[0][0].total == 44


async def test_an_index_that_is_deleted_while_it_is_open_is_made_anew(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        await stored(host, "one", "copper")
        assert await places(host, "copper") == [("one", 0)]
        for file in (heald_home / "cache").glob("search*"):
            file.unlink()
        assert await places(host, "copper") == [("one", 0)]


@pytest.mark.parametrize("content", [b"something of another program", b"\0" * 4096])
async def test_a_file_that_is_not_ours_is_left_as_it_is(
    open_rows: OpenHost, heald_home: Path, content: bytes
) -> None:
    index_of(heald_home).parent.mkdir()
    index_of(heald_home).write_bytes(content)
    async with open_rows() as host:
        await stored(host, "one", "copper")
        assert await places(host, "copper") == [("one", 0)]
    assert index_of(heald_home).read_bytes() == content


def block_with_a_file(cache: Path) -> None:
    cache.write_text("something of a person's own")


def block_with_a_folder(cache: Path) -> None:
    (cache / "search-v1.lock").mkdir(parents=True)


def block_with_a_broken_link(cache: Path) -> None:
    cache.symlink_to(cache / "nowhere")


def block_by_permissions(cache: Path) -> None:
    cache.mkdir(mode=0o500)
    if os.access(cache, os.W_OK):
        pytest.skip("this user may write everywhere")


@pytest.mark.parametrize(
    "block",
    [block_with_a_file, block_with_a_folder, block_with_a_broken_link, block_by_permissions],
)
async def test_a_cache_that_cannot_be_used_changes_no_answer_and_is_told_of_once(
    open_rows: OpenHost,
    heald_home: Path,
    caplog: pytest.LogCaptureFixture,
    block: Callable[[Path], None],
) -> None:
    block(heald_home / "cache")
    async with open_rows(without=("projection-cache",)) as host:
        await stored(host, "one", "copper")
        await made(host, "two", "copper")
        for _ in range(2):
            page = await search(host, "copper")
            assert sorted(hit.session for hit in page.hits) == ["one", "two"]
            assert (page.total, page.unread) == (2, ())
        await host.scope.require(session_persistence).delete(SessionId("one"))
        assert await places(host, "copper") == [("two", 0)]
    told = [r for r in caplog.records if r.name == "heald_query" and r.levelno >= logging.WARNING]
    assert [str(heald_home / "cache") in record.getMessage() for record in told] == [True]


async def test_an_index_that_is_damaged_is_left_and_begun_anew(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        await stored(host, "one", *(f"copper {n}" for n in range(200)))
        await search(host, "copper")
    file = index_of(heald_home)
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    async with open_rows() as host:
        assert (await search(host, "copper")).total == 200
    assert file.read_bytes() == content


async def test_a_deleted_session_is_forgotten_and_a_restored_one_found_again(
    open_rows: OpenHost,
) -> None:
    async with open_rows() as host:
        storage = host.scope.require(session_persistence)
        await stored(host, "one", "copper")
        await stored(host, "two", "copper")
        assert len(await places(host, "copper")) == 2
        await storage.delete(SessionId("one"))
        assert await places(host, "copper") == [("two", 0)]
        await storage.restore(SessionId("one"))
        assert len(await places(host, "copper")) == 2


async def test_many_texts_are_forgotten_a_few_at_a_time(
    open_rows: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heald_query.search.index._AT_ONCE", 3)
    async with open_rows() as host:
        storage = host.scope.require(session_persistence)
        for name, count in (("one", 3), ("two", 7), ("three", 1)):
            await stored(host, name, *["copper"] * count)
        assert (await search(host, "copper")).total == 11
        for name in ("one", "two"):
            await storage.delete(SessionId(name))
        assert await places(host, "copper") == [("three", 0)]
        await storage.delete(SessionId("three"))
        await stored(host, "three", "bronze", "bronze")
        assert await places(host, "copper") == []
        assert len(await places(host, "bronze")) == 2


async def test_another_log_in_the_place_of_one_is_indexed_in_its_stead(
    open_rows: OpenHost,
) -> None:
    async with open_rows() as host:
        await stored(host, "one", "copper", "copper")
        assert len(await places(host, "copper")) == 2
        await host.scope.require(session_persistence).delete(SessionId("one"))
        await stored(host, "one", "bronze", "bronze", "bronze")
        assert await places(host, "copper") == []
        assert len(await places(host, "bronze")) == 3


async def test_a_log_that_lost_its_end_is_indexed_anew(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        await stored(host, "one", "copper", "bronze")
        assert await places(host, "bronze") == [("one", 1)]
        tail = heald_home / "sessions" / "one" / "tail.jsonl"
        lines = tail.read_bytes().splitlines(keepends=True)
        tail.write_bytes(b"".join(lines[:-1]))
        assert await places(host, "bronze") == []
        assert await places(host, "copper") == [("one", 0)]


async def test_what_can_be_read_of_a_damaged_log_is_found_and_the_log_named(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        await stored(host, "one", "copper", "bronze", "copper")
        await stored(host, "two", "copper")
        tail = heald_home / "sessions" / "one" / "tail.jsonl"
        tail.write_bytes(tail.read_bytes().replace(b"bronze", b"br0nze"))
        (heald_home / "sessions" / "two" / "session.json").write_text("{")
        for _ in range(2):
            page = await search(host, "copper")
            assert [(hit.session, hit.seq) for hit in page.hits] == [("one", 2), ("one", 0)]
            assert page.unread == ("one", "two")
        assert (await search(host, "copper", sessions=frozenset({SessionId("one")}))).unread == (
            "one",
        )


async def test_a_log_whose_end_is_not_known_any_more_is_named(
    open_rows: OpenHost, heald_home: Path
) -> None:
    async with open_rows() as host:
        await stored(host, "one", "copper " * 20_000)  # enough to be sealed, so the tail is empty
        assert await places(host, "copper") == [("one", 0)]
        (heald_home / "sessions" / "one" / "tail.jsonl").write_bytes(b"no header\n")
        for _ in range(2):
            page = await search(host, "copper")
            assert [(hit.session, hit.seq) for hit in page.hits] == [("one", 0)]
            assert page.unread == ("one",)


async def test_filters_hold_together(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        store = host.scope.require(session_store)
        one = await made(host, "one", "copper", cwd="/loom")
        answer(one, "copper too")
        await one.flush()
        await made(host, "child", "copper", cwd="/loom/reed", origin="subagent")
        await store.fork(SessionId("one"), id=SessionId("fork"))
        await made(host, "elsewhere", "copper", cwd="/loomery")
        roles: frozenset[Role] = frozenset({"assistant"})
        asked: dict[str, dict[str, Any]] = {
            "all": {},
            "role": {"roles": roles},
            "sessions": {"sessions": frozenset({SessionId("fork")})},
            "own": {"inherited": False, "subagents": False},
            "inherited": {"inherited": True},
            "subagents": {"subagents": True},
            "cwd": {"cwd": "/loom/", "inherited": False},
            "none": {"sessions": frozenset(), "roles": roles},
        }
        found = {n: set(await places(host, "copper", **where)) for n, where in asked.items()}
        forked = {("fork", 0), ("fork", 1)}
        mine = {("one", 0), ("one", 1)}
        assert found == {
            "all": mine | forked | {("child", 0), ("elsewhere", 0)},
            "role": {("one", 1), ("fork", 1)},
            "sessions": forked,
            "own": mine | {("elsewhere", 0)},
            "inherited": forked,
            "subagents": {("child", 0)},
            "cwd": mine | {("child", 0)},
            "none": set(),
        }


async def test_a_search_since_a_time_finds_what_was_written_then_or_later(
    open_rows: OpenHost,
) -> None:
    async with open_rows() as host:
        session = await made(host, "one", "copper")
        [first] = session.hot()
        while host.now() <= first.time:  # noqa: ASYNC110 - nobody hears of the time
            await asyncio.sleep(0)
        say(session, "copper")
        await session.flush()
        second = session.hot()[1]
        assert await places(host, "copper", since=first.time) == [("one", 1), ("one", 0)]
        assert await places(host, "copper", since=second.time) == [("one", 1)]
        assert await places(host, "copper", since=second.time + 1) == []


@pytest.mark.parametrize("time", [-1, 2**42, 2**53, 2**64])
async def test_a_clock_that_was_wrong_hides_nothing(open_rows: OpenHost, time: int) -> None:
    async with open_rows() as host:
        await stored(host, "sound", "weaver")
        host.now = lambda: time
        await stored(host, "odd", "weaver", "weaver")
        assert sorted(await places(host, "weaver")) == [("odd", 0), ("odd", 1), ("sound", 0)]


async def test_a_page_has_the_best_first_and_says_how_many_there_are(
    open_rows: OpenHost,
) -> None:
    async with open_rows() as host:
        await stored(host, "one", *(["copper and many other words beside it"] * 5), "copper copper")
        page = await search(host, "copper", limit=2)
        assert [hit.seq for hit in page.hits] == [5, 4]
        assert page.total == 6
        assert (await search(host, "copper", limit=0)).total == 6


async def test_a_cancelled_search_stops_between_pieces(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        for n in range(5):
            await stored(host, f"s{n}", "copper")
        token = CancelToken()

        def progress(done: int, total: int) -> None:
            assert total == 5
            if done == 2:
                token.cancel("enough")

        query = host.scope.require(session_query)
        with pytest.raises(Cancelled):
            await query.search("copper", on_progress=progress, cancel=token)
        assert len(await places(host, "copper")) == 5


async def test_searches_at_once_all_find_everything(open_rows: OpenHost) -> None:
    async with open_rows() as host:
        await stored(host, "one", *(f"copper {n}" for n in range(1200)))
        pages = await asyncio.gather(*(search(host, "copper", limit=1) for _ in range(4)))
        assert [page.total for page in pages] == [1200] * 4


async def test_the_end_of_a_turn_is_indexed_without_a_search(
    open_rows: OpenHost, monkeypatch: pytest.MonkeyPatch, heald_home: Path
) -> None:
    monkeypatch.setattr("heald_query.search.searching.PAUSE", 0.0)
    async with open_rows() as host:
        session = await made(host, "one", "copper")
        session.append("turn/start", {"turn": 1})
        session.append("turn/end", {"turn": 1, "outcome": "completed"})
        async with asyncio.timeout(20):
            while not (found := indexed(heald_home)):  # noqa: ASYNC110 - nobody hears of it
                await asyncio.sleep(0.01)
        assert found == [(0, "copper")]


def indexed(home: Path) -> list[Any]:
    """Return the texts in the index, without touching one that is being made."""
    import apsw

    if not index_of(home).exists():
        return []
    connection = apsw.Connection(str(index_of(home)), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(connection.execute("SELECT seq, text FROM documents"))
    except (apsw.BusyError, apsw.SQLError, apsw.CantOpenError):
        return []
    finally:
        connection.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text() | st.sampled_from(['"', " OR ", "*", "(", "-", "words:", "\0", "中"])))
def test_no_typed_text_is_a_syntax_error(pieces: list[str]) -> None:
    import apsw

    from heald_query.search import finding, index

    connection = apsw.Connection(":memory:")
    connection.execute(index.SCHEMA.script)
    typed = Typed.parse("".join(pieces))
    assert finding.find(connection, typed, SearchFilter(), 5) == ([], 0)


def test_a_pasted_file_is_no_error_either() -> None:
    import apsw

    from heald_query.search import finding, index

    connection = apsw.Connection(":memory:")
    connection.execute(index.SCHEMA.script)
    for text in (
        " ".join(map(str, range(5000))),
        '"' + "word " * 5000 + '"',
        "x" * 100_000,
        "中" * 9000,
    ):
        typed = Typed.parse(text)
        assert typed.expression is not None
        assert finding.find(connection, typed, SearchFilter(), 5) == ([], 0)


def marked(text: str, typed: str) -> list[str]:
    cut = snippet(text, Typed.parse(typed))
    return [cut.text[begin:end] for begin, end in cut.marks]


@pytest.mark.parametrize(
    ("text", "typed", "expected"),
    [
        ("The weaver weaves; a WEAVER", "weaver", ["weaver", "WEAVER"]),
        ("call getUserName, userName", "user", ["User", "user"]),
        ("call getUserName", "get_user_name", ["getUserName"]),
        ("call get_user_name", "getUserName", ["get_user_name"]),
        ("请使用gen-itgc工具", "gen-itgc 工具", ["gen-itgc", "工具"]),
        ("检查线程", "线", ["线"]),
        ("superuser user", "user", ["user"]),
        ("Le re\u0301sume\u0301", "resume", ["r\u00e9sum\u00e9"]),
        ("see src/heald/index.py:4", "heald/index.py", ["heald/index.py"]),
        ("one\n\n  two", '"one two"', ["one two"]),
        ("shipped🎉now", "🎉", ["🎉"]),
        ("HTTPServer", "server http", ["HTTP", "Server"]),
        ("nothing of it", "weaver", []),
    ],
)
def test_a_snippet_marks_what_was_found(text: str, typed: str, expected: list[str]) -> None:
    assert marked(text, typed) == expected


def test_a_long_row_of_pictures_is_looked_at_once_and_not_in_every_way() -> None:
    text = "✅ " * 3000 + "no " + "✅ " * 30 + "yes"
    assert marked(text, "✅" * 30 + "yes") == ["✅ " * 30 + "yes"]


def test_a_snippet_is_one_short_line_around_the_most_of_what_was_typed() -> None:
    filler = "lorem ipsum\tdolor\n" * 40
    text = f"{filler}copper alone\n{filler}copper\nbeside bronze\n{filler}"
    cut = snippet(text, Typed.parse("bronze copper"))
    assert "copper beside bronze" in cut.text
    assert len(cut.text) <= 162
    assert cut.text.startswith("…")
    assert cut.text.endswith("…")
    assert "\n" not in cut.text
    assert [cut.text[a:b] for a, b in cut.marks] == ["copper", "bronze"]


@settings(max_examples=200, deadline=None)
@given(st.text(), st.text())
def test_marks_are_in_order_and_inside_the_snippet(text: str, typed: str) -> None:
    cut = snippet(text * 20, Typed.parse(typed))
    ends = [0, *(place for mark in cut.marks for place in mark), len(cut.text)]
    assert ends == sorted(ends)


def test_a_snippet_of_a_large_text_is_cut_out_of_any_place_in_it() -> None:
    filler = "lorem ipsum dolor " * 20_000
    for text in (f"copper {filler}", f"{filler}copper", f"{filler}copper{filler} copper"):
        cut = snippet(text, Typed.parse("copper"))
        assert "copper" in [cut.text[a:b] for a, b in cut.marks]
        assert cut.text.startswith("…") == (not text.startswith("copper"))


def test_a_snippet_of_a_large_text_shows_the_most_of_what_was_typed() -> None:
    filler = "copper and lorem ipsum dolor " * 5_000
    text = f"{filler}copper\nbeside bronze\n{filler}"
    assert marked(text, "bronze copper").count("bronze") == 1
    assert "copper beside bronze" in snippet(text, Typed.parse("bronze copper")).text


def test_a_text_in_which_no_word_is_near_enough_to_be_looked_at_has_a_snippet() -> None:
    text = "lorem ipsum dolor " * 500_000 + "copper"
    cut = snippet(text, Typed.parse("copper"))
    assert cut.text.startswith("lorem ipsum")
    assert cut.text.endswith("…")
    assert cut.marks == ()


def test_a_snippet_costs_little_however_large_the_text_and_however_much_is_typed() -> None:
    words = [f"word{n}" for n in range(100)]
    text = "x wordless " * 90_000 + " ".join(words)
    typed = Typed.parse(" ".join(words))
    before = time.process_time()
    cut = snippet(text, typed)
    assert time.process_time() - before < 1  # where trying every word at every place takes 4 s
    assert len(cut.marks) > 5


async def test_others_have_their_turn_while_snippets_are_made(
    open_rows: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, threads = threading.get_ident(), set()

    def seen(text: str, typed: Typed) -> Snippet:
        threads.add(threading.get_ident())
        return snippet(text, typed)

    monkeypatch.setattr("heald_query.search.searching.snippet", seen)
    async with open_rows() as host:
        await stored(host, "one", "copper")
        assert await places(host, "copper") == [("one", 0)]
    assert threads
    assert here not in threads
