"""What folding costs beside the least that could do it, and in what it reads and writes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import apsw
import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))  # this file is run as a script

from benchmarks.report import Measurement, fastest, main
from benchmarks.storage import WORDS, data_of, least_read

from heald import Discovery, Host, NoConfig, Plugin, Row, implements, open_host
from heald_persistence import StoredLog, session_persistence
from heald_projection import Unit, projection_changed, units
from heald_projection_cache import projection_cache
from heald_query import session_query
from heald_session import (
    APPEND,
    FORMAT_VERSION,
    Event,
    Header,
    LogOffset,
    NewEvent,
    Seq,
    Session,
    SessionId,
    session_store,
)

UNITS = 20
DRIVEN = 20_000
EVENTS = 100_000
BEHIND = 100
LONG = SessionId("long")
FEW, MANY = 10, 2_000
PROSE = random.Random(1).choices(WORDS, k=200_000)  # noqa: S311


class Moved(msgspec.Struct):
    """The data of the event that is driven through the units."""

    id: str
    text: str


def nothing_yet(_header: Header, _cut: LogOffset) -> dict[str, Any]:
    """Begin every fold."""
    return {"count": 0, "text": ""}


def counted(state: dict[str, Any], _event: Event) -> dict[str, Any]:
    """Count events."""
    return {"count": state["count"] + 1, "text": state["text"]}


def last(_state: dict[str, Any], event: Event) -> dict[str, Any]:
    """Keep what the latest event says."""
    return {"count": 0, "text": event.data_as(Moved).text}


def as_it_is(state: Any) -> Any:
    """Show the whole state."""
    return state


def declared(view: Callable[[Any], Any] | None) -> Iterator[Unit]:
    """Yield the units: two want the event, the others what never comes."""
    for n in range(UNITS):
        wanted = {"bench/moved"} if n < 2 else {f"bench/other-{n}"}  # noqa: PLR2004
        yield Unit(
            key=f"bench{n}",
            state_version=1,
            event_types=frozenset(wanted),
            initial=nothing_yet,
            apply=last if n % 2 else counted,
            view=view,
        )


class UnseenPlugin(Plugin[NoConfig]):
    """Declares units for the host alone."""

    @classmethod
    @implements(units)
    def folds(cls) -> Iterable[Unit]:
        """Declare twenty."""
        return declared(None)


class SeenPlugin(Plugin[NoConfig]):
    """Declares units that clients see, and hears of every change."""

    @classmethod
    @implements(units)
    def folds(cls) -> Iterable[Unit]:
        """Declare twenty."""
        return declared(as_it_is)

    @implements(projection_changed)
    def hear(self, session: Session, key: str, value: Any, seq: Seq) -> None:
        """Hear of a change, as a server does."""


class Growing:
    """A session as the registry meets it: an empty log, and whatever is appended to it."""

    def __init__(self, session: Session) -> None:
        self.header, self.cut, self.scope = session.header, session.cut, session.scope
        self.hot_from = self.end = LogOffset(0)


@contextlib.asynccontextmanager
async def registry_of(place: Path, bench: type[Plugin[Any]]) -> AsyncIterator[tuple[Session, Any]]:
    """Give a session, and the row that the registry hears of sessions by."""
    rows = [Row(name, name) for name in ("session", "projection", "bench")]
    shipped = Discovery()
    program = {name: shipped.plugin_class(name) for name in ("session", "projection")}
    discovery = Discovery([], program={**program, "bench": bench})  # else others' units fold too
    async with open_host(home=place, rows=rows, env={}, discovery=discovery, strict=True) as host:
        session = await host.scope.require(session_store).create(cwd=None)
        mounted = {row.planned.row.id: row.plugin for row in host.composition.mounted}
        yield session, mounted["projection"]


async def driving(place: Path) -> AsyncIterator[Measurement]:
    """Compare driving events through the registry with a dictionary of functions."""
    data = [msgspec.Raw(msgspec.json.encode(data_of(n))) for n in range(2000)]
    events = [Event(Seq(n), "bench/moved", n, data[n % len(data)]) for n in range(DRIVEN)]
    for bench, what in ((UnseenPlugin, "unseen"), (SeenPlugin, "seen by a client")):
        async with registry_of(place, bench) as (session, registry):
            ours = partial(drive, session, registry, events)
            least = partial(drive_least, events, tell=bench is SeenPlugin)
            took, by_hand = fastest(15, ours, least)
        each = took / DRIVEN * 1e6
        yield Measurement(f"an event through {UNITS} units of which 2 want it, {what}", each, "us")
        limit = 2 if bench is UnseenPlugin else None
        name = f"the same beside a dictionary of the 2 by hand, {what}"
        yield Measurement(name, took / by_hand, "x", limit)


def drive(session: Session, registry: Any, events: list[Event]) -> None:
    """Tell the registry of events, as a live session does after each append."""
    growing, advance = Growing(session), registry.advance_cells
    registry.fill_cells(growing)
    growing.end = LogOffset(len(events))
    for event in events:
        advance(growing, event)


def drive_least(events: list[Event], *, tell: bool) -> None:
    """Fold the same by hand."""
    states = {"bench0": nothing_yet(*cast("Any", (None, 0))), "bench1": {}}
    table = {"bench/moved": [("bench0", counted), ("bench1", last)]}
    heard: list[Any] = []
    for event in events:
        for key, apply in table.get(event.type, ()):
            state = apply(states[key], event)
            if tell and state is not states[key]:
                heard.append((key, as_it_is(state), event.seq))
            states[key] = state


def prose(number: int, words: int) -> str:
    """Make a text that compresses as prose does."""
    start = number * 7919 % (len(PROSE) - words)
    return " ".join(PROSE[start : start + words])


def turn(number: int) -> Iterator[NewEvent]:
    """Yield the twenty events of a turn: a prompt, five tools that read something, an answer.

    What is said is as long as a few sentences, and what a tool reads as a page of a file.
    """
    prompt = {"id": f"m{number}", "text": prose(number, 60)}
    places = [prose(number * 5 + n, 6) for n in range(5)]
    calls = [
        {"id": f"c{number}-{n}", "name": "read", "arguments": {"path": place}}
        for n, place in enumerate(places)
    ]
    yield NewEvent("inbox/message", prompt)
    yield NewEvent("turn/start", {"turn": number})
    yield NewEvent("user/message", prompt, APPEND)
    for step, asked in ((1, calls), (2, [])):
        usage = {"input_tokens": 900 * step, "output_tokens": 60, "cached_tokens": 800 * step}
        yield NewEvent("step/start", {"turn": number, "step": step, "model": f"bench:{number % 3}"})
        answer = {"text": prose(number * 2 + step, 60), "tool_calls": asked, "usage": usage}
        yield NewEvent("assistant/message", answer, APPEND)
        for n, call in enumerate(asked):
            told = {"call_id": call["id"], "name": "read"}
            yield NewEvent("tool/start", told)
            yield NewEvent("tool/result", {**told, "text": prose(number * 5 + n, 300)}, APPEND)
        yield NewEvent("step/end", {"turn": number, "step": step})
    yield NewEvent("turn/end", {"turn": number, "outcome": "completed"})


async def write_long(place: Path) -> None:
    """Store a session of many events, and checkpoint it some events before its end."""
    events = [event for number in range(EVENTS // 20) for event in turn(number + 1)]
    async with host_at(place) as host:
        backend = host.scope.require(session_persistence)
        header = Header(version=FORMAT_VERSION, id=LONG, log_id="long", created_at=1)
        writer = await backend.create(header, LogOffset(0))
        for start in range(0, EVENTS - BEHIND, 50):
            writer.append([stored(seq, events[seq]) for seq in range(start, start + 50)])
            await writer.flush()
        await writer.close()
        store = host.scope.require(session_store)
        await store.dispose(await store.resume(LONG))
    async with host_at(place, without="projection-cache") as host:
        session = await host.scope.require(session_store).resume(LONG)
        for new in events[EVENTS - BEHIND :]:
            session.append(new.type, new.data, surface=new.surface)


def stored(seq: int, new: NewEvent) -> Event:
    """Make the event that a log holds."""
    data = msgspec.Raw(msgspec.json.encode(new.data))
    return Event(Seq(seq), new.type, 1 + seq, data, surface=new.surface)


@contextlib.asynccontextmanager
async def host_at(place: Path, *, without: str = "") -> AsyncIterator[Host]:
    """Open a host that keeps sessions in a folder, and everything that is derived from them."""
    names = ("session", "persistence", "projection", "projection-cache", "query")
    rows = [Row(name, name) for name in names if name != without]
    async with open_host(home=place, rows=rows, env={}, strict=True) as host:
        yield host


async def refolding(place: Path) -> AsyncIterator[Measurement]:
    """Compare cold folds with every unit with decoding the bytes that they are of."""
    await write_long(place)
    folder = place / "sessions" / LONG
    ours = least = float("inf")
    async with host_at(place, without="projection-cache") as host:
        keys = [unit.key for unit in host.vocabulary(units)]
        for _ in range(5):
            gc.collect()
            began = time.perf_counter()
            await observed(host, keys)
            ours = min(ours, time.perf_counter() - began)
            began = time.perf_counter()
            assert least_read(folder, payloads=True) == EVENTS  # noqa: S101
            least = min(least, time.perf_counter() - began)
    yield Measurement(f"cold fold of {EVENTS:,} events, {len(keys)} units", ours, "s")
    yield Measurement("the same beside decoding them, payloads too", ours / least, "x", 2)
    async with host_at(place) as host:
        with reads_noted(host) as logs:
            began = time.perf_counter()
            await observed(host, keys)
            took = time.perf_counter() - began
    decoded = sum(log.frames_decoded for log in logs)
    yield Measurement(f"the same from checkpoints {BEHIND} events behind", took, "s")
    yield Measurement("frames decoded for it", decoded, "count", 2)


async def observed(host: Host, keys: list[str]) -> None:
    """Read every projection of the long session where it ends."""
    async with host.scope.require(session_query).observe_session(LONG, keys) as observation:
        assert observation.projections.as_of_seq == EVENTS - 1  # noqa: S101
        assert observation.projections.values["sessionStats"]["turns"] > 0  # noqa: S101


@contextlib.contextmanager
def reads_noted(host: Host) -> Iterator[list[StoredLog]]:
    """Note every log that is opened meanwhile, for what it counts."""
    kind = type(host.scope.require(session_persistence))
    logs, read = [], kind.read

    async def noted(*asked: Any, **how: Any) -> StoredLog:
        logs.append(await read(*asked, **how))
        return logs[-1]

    with patch.object(kind, "read", noted):
        yield logs


async def checkpointing(place: Path) -> AsyncIterator[Measurement]:
    """Compare what a checkpoint writes beside few other sessions and beside many."""
    async with host_at(place) as host:
        store = host.scope.require(session_store)
        written: list[float] = []
        for others in (FEW, MANY):
            for number in range(len(written) and FEW, others):
                other = await store.create(cwd=None, id=SessionId(f"other-{number}"))
                other.append("turn/start", {"turn": 1})
                await store.dispose(other)
            written.append(await bytes_of_checkpoints(host, f"mine-{others}"))
    yield Measurement(f"bytes of a checkpoint beside {FEW} sessions", written[0], "bytes")
    name = f"the same beside {MANY:,} sessions / beside {FEW}"
    yield Measurement(name, written[1] / written[0], "x", 1.5)


async def bytes_of_checkpoints(host: Host, name: str) -> float:
    """Return what one save of a session adds to the log of the database, which is all it writes."""
    session = await host.scope.require(session_store).create(cwd=None, id=SessionId(name))
    cache = host.scope.require(projection_cache)
    sizes = []
    for number in range(1, 12):
        session.append("step/start", {"turn": 1, "step": number, "model": "bench:one"})
        empty_logs(host.home)
        await cache.save(session)
        sizes.append(sum(file.stat().st_size for file in logs_in(host.home)))
        assert sizes[-1] > 0  # noqa: S101
    return statistics.median(sizes)


def empty_logs(home: Path) -> None:
    """Move what the database logged into it."""
    for file in logs_in(home):
        connection = apsw.Connection(str(file).removesuffix("-wal"))
        connection.pragma("schema_version")  # only a connection that has read knows of the log
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        connection.close()


def logs_in(home: Path) -> list[Path]:
    """Return the write-ahead logs of checkpoints."""
    return list((home / "cache").glob("checkpoints*-wal"))


async def everything(place: Path) -> AsyncIterator[Measurement]:
    """Measure one thing after another."""
    async for measurement in driving(place / "driving"):
        yield measurement
    async for measurement in refolding(place / "long"):
        yield measurement
    async for measurement in checkpointing(place / "many"):
        yield measurement


def one_by_one() -> Iterator[Measurement]:
    """Run the measurements in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        measurements = everything(Path(folder))
        while (measurement := runner.run(anext(measurements, None))) is not None:
            yield measurement


if __name__ == "__main__":
    main(one_by_one())
