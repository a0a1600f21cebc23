"""What listing subagents costs: log read for it, in counters, and time beside the least.

It stores ten million events at once, and takes several minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))  # this file is run as a script

from benchmarks.report import Measurement, main

from heald import Cancelled, CancelToken, Discovery, Host, Row, implements, open_host
from heald_persistence import SessionPersistence, StoredLog, session_persistence
from heald_persistence.plugin import PersistencePlugin
from heald_persistence.testing import blocks_in
from heald_projection import projections, units
from heald_session import LogOffset, NewEvent, SessionId, session_store
from heald_subagent import ChildRow, SubagentRow, subagents

PARENT = SessionId("parent")
DESCRIPTOR = "subagent/descriptor"
KEY = "subagent"
IDENTITY = {"version": 2, "mode": "continuable", "provider": "spawn", "label": "helper"}
WORDS = [f"word{number}" for number in range(3000)]
SHORT = 1_000
"""Events of the children that are compared with a loop over dictionaries."""
SIZES = ((1_000, SHORT), (1_000, 10_000), (20, 100_000))
"""How many children, and how many events each of them has."""
ROWS = ("projection", "query", "subagent")
HOT = {"hot_events": 500}
"""A thousand live sessions are to fit into memory; listing them does not depend on it."""
INHERITED = 41
"""How many events a seeded child begins with that are not its own."""


@attrs.define
class Meter:
    """Every log that was opened for reading."""

    logs: list[StoredLog] = attrs.field(factory=list)

    def reset(self) -> None:
        """Forget what was read so far."""
        self.logs.clear()

    @property
    def bytes_read(self) -> int:
        """Bytes of log, index and tail included."""
        return sum(log.bytes_read for log in self.logs)

    @property
    def frames(self) -> int:
        """Blocks of events that were decoded."""
        return sum(log.frames_decoded for log in self.logs)


@attrs.frozen
class Metered:
    """Storage whose reads are counted."""

    _inner: SessionPersistence
    _meter: Meter

    async def read(self, id: SessionId, **how: Any) -> StoredLog:  # noqa: A002
        """Open a log, and remember it."""
        log = await self._inner.read(id, **how)
        self._meter.logs.append(log)
        return log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@contextlib.asynccontextmanager
async def host_at(
    place: Path, meter: Meter, *, cache: bool, kept: bool = True
) -> AsyncIterator[Host]:
    """Open a host whose reads of logs are counted, if logs are kept at all."""

    class Counting(PersistencePlugin):
        """Keeps logs as the shipped row does."""

        @implements(session_persistence)
        def storage(self) -> Any:
            return Metered(super().storage(), meter)

    names = [*ROWS, "projection-cache"] if cache else ROWS
    rows = [Row("session", "session", config=HOT), *(Row(name, name) for name in names)]
    rows += [Row("persistence", "counting")] * kept
    discovery = Discovery(program={"counting": Counting})
    async with open_host(home=place, rows=rows, env={}, discovery=discovery, strict=True) as host:
        yield host


async def template(host: Host, name: str, events: int, *, seeded: bool, seed: int = 0) -> SessionId:
    """Store one child with so many events, its descriptor the first of its own."""
    store = host.scope.require(session_store)
    first = [NewEvent(DESCRIPTOR, IDENTITY)]
    if seeded:
        ancestor = await store.create(cwd="/loom", first=[NewEvent(DESCRIPTOR, IDENTITY)])
        chance = random.Random(0)  # noqa: S311 - it only has to vary
        for number in range(INHERITED - 1):
            ancestor.append(*turn_event(number, chance))

        def below(header: Any) -> Any:
            return msgspec.structs.replace(header, parent_session=PARENT, origin="subagent")

        child = await store.fork(
            ancestor.id,
            id=SessionId(name),
            cut=LogOffset(INHERITED),
            header=below,
            first=first,
        )
        await store.dispose(ancestor)
    else:
        child = await store.create(
            cwd="/loom",
            id=SessionId(name),
            parent_session=PARENT,
            origin="subagent",
            delegation_depth=1,
            first=first,
        )
    chance = random.Random(seed)  # noqa: S311 - it only has to vary
    while child.end < events:
        kind, data = turn_event(child.end, chance)
        child.append(kind, data)
        if child.end % 2_000 == 0:
            await child.flush()
    await store.dispose(child)
    return child.id


def turn_event(number: int, chance: random.Random) -> tuple[str, dict[str, Any]]:
    """Make an event of a transcript in which an agent reads, runs tools and answers.

    On average it has about 1,100 bytes, as the events of real transcripts have.
    """
    turn, place = divmod(number, 8)
    text = " ".join(chance.choices(WORDS, k=60))
    read = " ".join(chance.choices(WORDS, k=920))
    call = {"id": str(number), "name": "read", "arguments": {"path": text[:40]}}
    made: tuple[tuple[str, dict[str, Any]], ...] = (
        ("turn/start", {"turn": turn + 1}),
        ("user/message", {"id": str(number), "text": text[:80]}),
        ("step/start", {"turn": turn + 1, "step": 1, "model": "scripted:demo"}),
        ("assistant/message", {"text": text, "finish": "tool_calls", "tool_calls": [call]}),
        ("tool/start", {"call_id": str(number), "name": "read"}),
        ("tool/result", {"call_id": str(number), "name": "read", "text": read}),
        ("step/end", {"turn": turn + 1, "step": 1}),
        ("turn/end", {"turn": turn + 1, "outcome": "completed"}),
    )
    return made[place]


def clone(sessions: Path, source: SessionId, count: int) -> list[SessionId]:
    """Put copies of a stored session beside it; sealed bytes never change, so they are shared."""
    made = []
    facts = msgspec.json.decode((sessions / source / "session.json").read_bytes())
    for number in range(count):
        name = SessionId(f"{source}-{number:05}")
        target = sessions / name
        target.mkdir(mode=0o700)
        facts["header"] |= {"id": name, "created_at": facts["header"]["created_at"] + 1}
        (target / "session.json").write_bytes(msgspec.json.encode(facts))
        (target / "lock").touch()
        shutil.copy(sessions / source / "tail.jsonl", target / "tail.jsonl")
        for shared in ("log.jsonl.zst", "log.idx"):
            if (sessions / source / shared).exists():
                os.link(sessions / source / shared, target / shared)
        made.append(name)
    shutil.rmtree(sessions / source)
    return made


async def corpus(
    place: Path, count: int, events: int, *, seeded: bool, kinds: int = 1
) -> list[SessionId]:
    """Store so many children of one parent, of so many kinds that differ in their tails."""
    async with host_at(place, Meter(), cache=False) as host:
        sources = [
            await template(host, f"child{kind}", events + 37 * kind, seeded=seeded, seed=kind)
            for kind in range(kinds)
        ]
    made = [clone(place / "sessions", source, count // kinds) for source in sources]
    return [name for each in zip(*made, strict=True) for name in each]


async def listed(host: Host, count: int) -> Sequence[SubagentRow]:
    """List the children, and make sure that all are there and healthy."""
    rows = await host.scope.require(subagents).list_children(PARENT)
    healthy = sum(isinstance(row, ChildRow) for row in rows)
    if healthy != count:
        raise RuntimeError(f"{healthy} of {count} children were listed")
    return rows


def least_to_read(session: Path) -> tuple[int, int, int]:
    """Return how many blocks name a descriptor, how many tails have events, and the bytes of it.

    Those are the index, the blocks that name a descriptor, and the tail.
    """
    found = blocks_in((session / "log.jsonl.zst").read_bytes())
    blocks = [stop - begin for begin, _, stop, zone in found if DESCRIPTOR in zone["types"]]
    tail = (session / "tail.jsonl").read_bytes()
    most = (session / "log.idx").stat().st_size + sum(blocks) + len(tail)
    return len(blocks), int(tail.count(b"\n") > 1), most


async def cold(place: Path, count: int, events: int, *, seeded: bool) -> AsyncIterator[Measurement]:
    """Count what a listing reads where no checkpoint can tell."""
    kind = "seeded" if seeded else "unseeded, no checkpoints"
    what = f"{count} cold children of {events} events, {kind}"
    names = await corpus(place, count, events, seeded=seeded)
    naming, tails, most = least_to_read(place / "sessions" / names[0])
    meter = Meter()
    async with host_at(place, meter, cache=False) as host:
        began = time.perf_counter()
        await listed(host, count)
        took = time.perf_counter() - began
    blocks = meter.frames / count - tails
    yield Measurement(f"{what}: blocks decoded, a child", blocks, "count", naming)
    yield Measurement(f"{what}: bytes read, a child", meter.bytes_read / count, "bytes", most)
    yield Measurement(f"{what}: time a child", took / count * 1e6, "us")


async def warm(place: Path, count: int, events: int) -> AsyncIterator[Measurement]:
    """Count what a listing reads of live children, and of the same once they are checkpointed."""
    names = await corpus(place, count, events, seeded=False)
    meter = Meter()
    async with host_at(place, meter, cache=True) as host:
        store = host.scope.require(session_store)
        for name in names:
            await store.resume(name)
        meter.reset()
        await listed(host, count)
        what = f"{count} live children of {events} events"
        yield Measurement(f"{what}: bytes of log read", meter.bytes_read, "bytes", 0)
        if events == SHORT:
            async for one in beside_a_bare_loop(host, names, "with storage", place / "sessions"):
                yield one
    async with host_at(place, meter, cache=True) as host:
        meter.reset()
        await listed(host, count)
        what = f"{count} cold children of {events} events with checkpoints"
        yield Measurement(f"{what}: bytes of log read", meter.bytes_read, "bytes", 0)


def bare_rows(headers: list[dict[str, Any]], views: Mapping[SessionId, Any]) -> list[ChildRow]:
    """Make the rows of live children from dictionaries."""
    parents = {h["parent_session"] for h in headers if h["origin"] == "subagent"}
    children = [h for h in headers if h["origin"] == "subagent" and h["parent_session"] == PARENT]
    children.sort(key=lambda h: (h["created_at"], h["id"]))
    rows = []
    for header in children:
        view = views[header["id"]]
        if view is not None and view["seq"] >= 0:
            rows.append(
                ChildRow(
                    id=header["id"],
                    activity="running",
                    has_children=header["id"] in parents,
                    mode=view["mode"],
                    label=view.get("label"),
                )
            )
    return rows


async def in_memory(place: Path) -> AsyncIterator[Measurement]:
    """Compare a listing of children that are nowhere but in memory, as the loop's rows are."""
    async with host_at(place, Meter(), cache=True, kept=False) as host:
        store, names = host.scope.require(session_store), []
        for _ in range(1_000):
            child = await store.create(
                cwd="/loom",
                parent_session=PARENT,
                origin="subagent",
                delegation_depth=1,
                first=[NewEvent(DESCRIPTOR, IDENTITY)],
            )
            names.append(child.id)
        async for one in beside_a_bare_loop(host, names, "in memory"):
            yield one


async def beside_a_bare_loop(
    host: Host, names: list[SessionId], where: str, sessions: Path | None = None
) -> AsyncIterator[Measurement]:
    """Compare a listing of live children with a loop that has everything in dictionaries.

    The loop is given what it needs. With storage, a listing looks through the directory of sessions
    first, since other processes may have put more children there; a loop over dictionaries cannot
    see those, so what is judged is one that looks through the directory too.
    """
    store, cells = host.scope.require(session_store), host.scope.require(projections)
    live = [session for name in names if (session := store.get(name)) is not None]
    headers = [msgspec.to_builtins(session.header) for session in live]
    views = {s.id: cells.snapshot(s, ["subagent"]).values["subagent"] for s in live}
    bare = looking = ours = float("inf")
    for _ in range(200):
        began = time.perf_counter()
        if sessions is not None:
            os.listdir(sessions)  # noqa: PTH208 - quicker than a path's own
        looked = time.perf_counter()
        bare_rows(headers, views)
        ended = time.perf_counter()
        bare, looking = min(bare, ended - looked), min(looking, ended - began)
        began = time.perf_counter()
        await listed(host, len(names))
        ours = min(ours, time.perf_counter() - began)
    what = f"{len(names)} live children {where}, beside a bare loop"
    if sessions is None:
        yield Measurement(what, ours / bare, "x", 5)
    else:
        yield Measurement(what, ours / bare, "x")
        yield Measurement(f"{what} that looks there too", ours / looking, "x", 5)


async def beside_whole_logs(place: Path) -> AsyncIterator[Measurement]:
    """Compare a listing of seeded children with reading and folding every log whole.

    Whole is with every unit that the host has, which is what a host that cannot select must do, and
    with the one unit alone, which takes less. Whole logs are read one after the other: folding them
    is work for one processor, which reading four at once does not share out.
    """
    count, whole = 1_000, 20
    names = await corpus(place, count, 10_000, seeded=True, kinds=5)
    async with host_at(place, Meter(), cache=False) as host:
        ours = float("inf")
        for _ in range(5):
            began = time.perf_counter()
            await listed(host, count)
            ours = min(ours, (time.perf_counter() - began) / count)
        every = [unit.key for unit in host.vocabulary(units)]
        what = f"{count} cold seeded children of 10000 events, beside reading every log whole"
        for keys, of in ((every, "every unit"), ([KEY], "one unit")):
            theirs = min([await read_whole(host, name, keys) for name in names[:whole]])
            yield Measurement(f"{what} and folding {of}", ours / theirs, "x", 1 / 50)
        yield await until_cancelled(host, count)


async def read_whole(host: Host, name: SessionId, keys: Sequence[str]) -> float:
    """Read a log from end to end and fold it; return how long it took, in seconds."""
    storage, registry = host.scope.require(session_persistence), host.scope.require(projections)
    began = time.perf_counter()
    async with await storage.read(name) as log:
        fold = registry.fold(log.header, log.cut, keys)
        async for batch in log.batches():
            for event in batch:
                if keys == [KEY]:
                    msgspec.json.decode(event.encoded)
                fold.feed(event)
        fold.snapshot(log.end)
    return time.perf_counter() - began


async def until_cancelled(host: Host, count: int) -> Measurement:
    """Count the reads that a listing still begins once it was cancelled."""
    storage: Any = host.scope.require(session_persistence)
    meter: Meter = storage._meter  # noqa: SLF001 - it is ours
    meter.reset()
    cancel = CancelToken()
    listing = asyncio.ensure_future(
        host.scope.require(subagents).list_children(PARENT, cancel=cancel)
    )
    while len(meter.logs) < 10:  # noqa: PLR2004, ASYNC110 - until it reads
        await asyncio.sleep(0)
    before = len(meter.logs)
    cancel.cancel("enough")
    with contextlib.suppress(Cancelled):
        await listing
    return Measurement(
        f"a cancelled listing of {count} cold children: reads after that",
        len(meter.logs) - before,
        "count",
        4,
    )


async def longer_logs(place: Path) -> AsyncIterator[Measurement]:
    """Compare the time a seeded child takes at 100,000 events with that at 1,000."""
    count, best = 20, {1_000: float("inf"), 100_000: float("inf")}
    hosts = {}
    async with contextlib.AsyncExitStack() as stack:
        for events in best:
            await corpus(place / str(events), count, events, seeded=True)
            hosts[events] = await stack.enter_async_context(
                host_at(place / str(events), Meter(), cache=False)
            )
        for _ in range(9):
            for events, host in hosts.items():
                began = time.perf_counter()
                await listed(host, count)
                best[events] = min(best[events], time.perf_counter() - began)
    ratio = best[100_000] / best[1_000]
    yield Measurement("a cold seeded child of 100000 events, beside one of 1000", ratio, "x", 1.5)


async def deep_trees(place: Path) -> AsyncIterator[Measurement]:
    """Compare the time a row takes among 10,000 live descendants with that among 1,000.

    A host does other things between two listings, so none begins with its sessions in the
    processor's caches: a thousand would fit there, and be compared with memory itself. Nor does it
    begin with garbage of what was made before.
    """
    best = {1_000: float("inf"), 10_000: float("inf")}
    hosts = {}
    other = bytes(range(256)) * 2**18
    async with contextlib.AsyncExitStack() as stack:
        for count in best:
            # Each that is kept would hold files open; in memory there may be as many as there are.
            hosts[count] = await stack.enter_async_context(
                host_at(place / str(count), Meter(), cache=False, kept=False)
            )
            await tree(hosts[count], count)
        for _ in range(40):
            for count, host in hosts.items():
                gc.collect()
                other.count(b"\x00\x02")
                began = time.perf_counter()
                await host.scope.require(subagents).list_descendants(PARENT)
                best[count] = min(best[count], (time.perf_counter() - began) / count)
    ratio = best[10_000] / best[1_000]
    yield Measurement("10000 live descendants, time a row beside 1000", ratio, "x", 1.5)


async def tree(host: Host, count: int) -> None:
    """Make so many live sessions below one, ten below each."""
    store = host.scope.require(session_store)
    parents = [PARENT]
    for number in range(count):
        child = await store.create(
            cwd="/loom",
            parent_session=parents[number // 10],
            origin="subagent",
            first=[NewEvent(DESCRIPTOR, IDENTITY)],
        )
        parents.append(child.id)


def measurements() -> Iterator[Measurement]:
    """Run everything, each part in a folder of its own."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a live session holds some open
    parts: list[Callable[[Path], AsyncIterator[Measurement]]] = [
        partial(warm, count=count, events=events) for count, events in SIZES
    ]
    for seeded in (False, True):
        parts += [partial(cold, count=n, events=events, seeded=seeded) for n, events in SIZES]
    parts += [in_memory, beside_whole_logs, longer_logs, deep_trees]
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="heald-listing-") as place:
            yield from asyncio.run(_all(part(Path(place))))


async def _all(measured: AsyncIterator[Measurement]) -> list[Measurement]:
    return [one async for one in measured]


if __name__ == "__main__":
    main(measurements())
