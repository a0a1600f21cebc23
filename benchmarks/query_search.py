"""What searching costs beside the bare full-text query, and whether indexing keeps up."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
from benchmarks.report import Measurement, fastest

from heald import Host, Row, open_host
from heald_persistence import session_persistence
from heald_query import SearchFilter, SessionQuery, session_query
from heald_query.search.finding import find, find_numbers
from heald_query.search.snippets import snippet
from heald_query.search.typed_text import Typed
from heald_session import (
    APPEND,
    FORMAT_VERSION,
    Event,
    Header,
    LogOffset,
    Seq,
    SessionId,
    session_store,
)

SESSIONS = 100
EACH = 500
LENGTH = 400
"""How many characters an event has."""
WRITER = 2000
"""How many events a second come from a writer that indexing is to keep up with."""
PAGE = 20
ROWS = ("session", "persistence", "projection", "query")

WORDS = [
    f"{a}{b}{c}" for a in ("wa", "lo", "re", "he") for b in "lmnrst" for c in ("er", "ed", "o")
]
RARE = ["shuttle", "bobbin", "treadle", "getUserName", "max_retry_count", "src/loom/reed.py:42"]
CHARACTERS = [chr(0x4E00 + 7 * n) for n in range(900)]
GLUED = "gen-itgc"

CLASSES = {
    "a common word": "waler",
    "a rare word": "shuttle",
    "two words in any order": "loned waler",
    "a phrase": '"waler waled"',
    "one Chinese character": CHARACTERS[3],
    "two Chinese characters": CHARACTERS[3] + CHARACTERS[5],
    "three Chinese characters": CHARACTERS[0] + CHARACTERS[1] + CHARACTERS[2],
    "an identifier glued to Chinese": GLUED,
    "a part of a camelCase name": "user",
    "a camelCase name": "getUserName",
    "a part of a snake_case name": "retry",
    "a path": "loom/reed.py",
    "a picture": "🎉",
    "operators and quotes": '+bobbin (waler* "',
}


def texts() -> Iterator[str]:
    """Yield prose, every fifth time Chinese, with what is rarer strewn in."""
    chance = random.Random(7)  # noqa: S311
    weights = [1 / (n + 1) for n in range(len(WORDS))]
    falling = [1 / (n + 1) for n in range(len(CHARACTERS))]
    for number in range(SESSIONS * EACH):
        if number % 5 == 0:
            text = "".join(chance.choices(CHARACTERS, falling, k=LENGTH - 10))
            if number % 50 == 0:
                text = f"{text[:100]}{GLUED}{text[100:]}"
        else:
            words = chance.choices(WORDS, weights, k=LENGTH // 5)
            if number % 20 == 1:
                words[chance.randrange(60)] = chance.choice(RARE)
            if number % 100 == 1:
                words[chance.randrange(60)] += "🎉"
            text = " ".join(words)
        yield text[:LENGTH]


async def written(host: Host, source: Iterator[str]) -> None:
    """Store the logs, in the way that is quickest."""
    storage, now = host.scope.require(session_persistence), host.now()
    for number in range(SESSIONS):
        id_ = SessionId(f"s{number:03}")
        header = Header(version=FORMAT_VERSION, id=id_, log_id=id_, created_at=now)
        writer = await storage.create(header, LogOffset(0))
        writer.append([_event(seq, now + number * EACH + seq, next(source)) for seq in range(EACH)])
        await writer.flush()
        await writer.close()


def _event(seq: int, moment: int, text: str) -> Event:
    data = msgspec.json.encode({"id": str(seq), "text": text})
    return Event(Seq(seq), "user/message", moment, msgspec.Raw(data), surface=APPEND)


async def indexing(host: Host) -> AsyncIterator[Measurement]:
    """Compare the time that indexing takes with the time that writing took, at its pace."""
    query, count = host.scope.require(session_query), SESSIONS * EACH
    began, longest = time.perf_counter(), [0.0]
    watching = asyncio.create_task(_longest_block(longest))
    page = await query.search("waler", limit=1)
    took = time.perf_counter() - began
    watching.cancel()
    assert page.unread == ()  # noqa: S101 - what is measured is the whole of it
    yield Measurement("indexing 50,000 texts of 400 characters", count / took, "texts/s")
    yield Measurement(
        "its time beside a writer's of 2,000 a second", took / (count / WRITER), "x", 1
    )
    yield Measurement("the event loop's longest block meanwhile", longest[0] * 1000, "ms")
    began = time.perf_counter()
    for _ in range(5):
        await query.search("nothingofthekind")
    took = (time.perf_counter() - began) / 5
    yield Measurement("a search of 100 sessions when nothing has changed", took * 1000, "ms")


async def following(host: Host) -> AsyncIterator[Measurement]:
    """Measure how soon a live session's next events are found."""
    query = host.scope.require(session_query)
    session = await host.scope.require(session_store).resume(SessionId("s000"))
    source, took, rounds = texts(), 0.0, 20
    for number in range(rounds):
        for _ in range(WRITER // rounds):
            data = {"id": str(number), "text": next(source)}
            session.append("user/message", data, surface=APPEND)
        await session.flush()
        began = time.perf_counter()
        await query.search("nothingofthekind")
        took += time.perf_counter() - began
    yield Measurement("following a live session of 2,000 events a second", took, "x", 1)


async def _longest_block(longest: list[float]) -> None:
    last = time.perf_counter()
    while True:
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest[0] = max(longest[0], now - last - 0.001)
        last = now


async def queries(query: SessionQuery, connection: apsw.Connection) -> AsyncIterator[Measurement]:
    """Compare what is found for every class of the truth table with the bare query for it."""
    measured: list[list[float]] = []
    where = SearchFilter(subagents=False, inherited=False)
    for name, typed in CLASSES.items():
        total = (await query.search(typed, where, limit=PAGE)).total
        times = fastest(5, *_calls(connection, typed, where))
        measured.append(times)
        yield Measurement(f"{name}: {typed}", total, "hits")
        yield Measurement(f"{name}, bare query", times[0] * 1000, "ms")
    bare, ids, page = (sum(column) for column in zip(*measured, strict=True))
    worst_ids, worst_page = (max(row[n] / row[0] for row in measured) for n in (1, 2))
    yield Measurement("ids, count and filters beside the bare queries", ids / bare, "x", 1.5)
    yield Measurement("the same for the class where it is most", worst_ids, "x")
    yield Measurement("pages of 20 with snippets beside the bare queries", page / bare, "x", 3)
    yield Measurement("the same for the class where it is most", worst_page, "x")


def _calls(connection: apsw.Connection, typed: str, where: SearchFilter) -> list[Callable[[], Any]]:
    """Return the bare query, and what we do for ids and for a page, from what was typed on."""
    expression = Typed.parse(typed).expression or ""
    bare = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"

    def page() -> object:
        asked = Typed.parse(typed)
        found, _ = find(connection, asked, where, PAGE)
        return [snippet(one.text, asked) for one in found]

    return [
        lambda: list(connection.execute(bare, (expression, PAGE))),
        lambda: find_numbers(connection, Typed.parse(typed), where, PAGE),
        page,
    ]


async def searches(place: Path) -> AsyncIterator[Measurement]:
    """Measure indexing and searching of 50,000 texts."""
    rows = [Row(name, name) for name in ROWS]
    async with open_host(home=place, rows=rows, env={}, strict=True) as host:
        await written(host, texts())
        async for measurement in indexing(host):
            yield measurement
        file = str(place / "cache" / "search-v1.sqlite")
        connection = apsw.Connection(file, flags=apsw.SQLITE_OPEN_READONLY)
        async for measurement in queries(host.scope.require(session_query), connection):
            yield measurement
        connection.close()
        async for measurement in following(host):
            yield measurement


def one_by_one() -> Iterator[Measurement]:
    """Run the measurements in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        measurements = searches(Path(folder))
        while (measurement := runner.run(anext(measurements, None))) is not None:
            yield measurement
