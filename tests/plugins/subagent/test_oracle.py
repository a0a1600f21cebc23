"""Whatever the world, and whatever happens in it: the listing says what every whole log says.

The oracle reads each log whole from storage, and folds it as the plan says its descriptors are. It
knows nothing of cells and projections; of checkpoints only when they were made, for what they say
of a child that inherited nothing counts, also when its log has grown or was damaged since.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heald import Cancelled, CancelToken, Discovery, HealdError, Host, Row, open_host
from heald_persistence import Damage, session_persistence
from heald_persistence.testing import blocks_in
from heald_session import (
    APPEND,
    Header,
    LogNeedsPlugin,
    LogOffset,
    NewEvent,
    Session,
    SessionId,
    SessionStore,
    Surface,
    session_store,
)
from heald_session.testing import append_unchecked
from heald_subagent import subagents

if TYPE_CHECKING:
    from tests.plugins.subagent.conftest import Spies

    Watched = Callable[[], tuple[Spies, Discovery]]

DATA: dict[str, Any] = {
    "one-shot": {"version": 2, "mode": "one-shot", "provider": "spawn"},
    "labelled": {"version": 2, "mode": "one-shot", "provider": "spawn", "label": "errand"},
    "continuable": {"version": 2, "mode": "continuable", "provider": "spawn", "label": "helper"},
    "uninstalled": {"version": 2, "mode": "one-shot", "provider": "of a plugin that is gone"},
    "broken": {"version": 2, "mode": "continuable"},
    "newer": {"version": 3, "mode": "one-shot", "provider": "spawn"},
}
SOUND = ("one-shot", "labelled", "continuable", "uninstalled")
LATE = {"version": 2, "mode": "continuable", "provider": "spawn", "label": "late"}
OTHERS = ("foreign", "needed", "compacted", "long")
"""Of a plugin that is not installed; the same, and it says so; a message that was compacted; one
that fills a frame if frames are small."""
FULL = pytest.mark.crash
LARGEST = 8


@attrs.frozen
class Planned:
    """A session of a world: a parent is any session or the root, itself and later ones too."""

    parent: int
    inherits: int | None
    subagent: bool
    events: tuple[str, ...]
    created_at: int
    live: bool
    damage: Literal["descriptor", "header", "frame"] | None
    later: tuple[str, ...] = ()
    """What was appended while nothing made checkpoints."""
    conflict: bool = False
    """Whether what is stored of its header became another while it was live."""


Operation = Literal["append", "dispose", "resume", "delete", "replace"]
OPERATIONS = st.sampled_from(["append", "dispose", "resume", "delete", "replace"])


@attrs.frozen
class Happening:
    """What is done to the sessions while they are listed."""

    between: tuple[tuple[int, Operation], ...] = ()
    """After the enumeration, before ids are paired."""
    at_reading: Mapping[int, Operation] = {}
    """To a session, just before its log is read."""
    aside: Mapping[int, tuple[int, Operation]] = {}
    """To another session if that was paired as live, just before a session's log is read."""
    cancel_at: int | None = None
    """Which of the moments at which anything happens the listing is cancelled at."""
    by_token: bool = True
    """Whether its token is cancelled, or else the task of its caller."""


@attrs.frozen
class Setting:
    """Whether checkpoints were made, whether the listing may look at them, and what is sealed."""

    checkpointed: bool
    cached: bool
    small_frames: bool = False


SESSIONS = st.builds(
    Planned,
    parent=st.integers(-2, LARGEST),
    inherits=st.none() | st.integers(0, LARGEST),
    subagent=st.sampled_from([True, True, True, False]),
    events=st.lists(st.sampled_from([*DATA, *OTHERS]), max_size=5).map(tuple),
    created_at=st.integers(0, 3),
    live=st.booleans(),
    damage=st.sampled_from([None, None, None, "frame", "descriptor", "header"]),
    later=st.lists(st.sampled_from([*DATA, *OTHERS]), max_size=2).map(tuple),
    conflict=st.booleans(),
)


def subagent(parent: int, *events: str, inherits: int | None = None, **more: Any) -> Planned:
    """Plan a cold subagent that is well, except as is said."""
    facts: dict[str, Any] = {"created_at": 0, "live": False, "damage": None} | more
    return Planned(parent, inherits, subagent=True, events=events, **facts)


INHERITED = [
    subagent(-1, "continuable"),
    subagent(-1, inherits=0, live=True),
    subagent(-1, inherits=0),
]
"""An identity, and two sessions that have it from an ancestor only."""
SIBLINGS = [
    subagent(-1, "continuable"),
    subagent(0, "labelled", created_at=2),
    subagent(0, "one-shot", created_at=1, live=True),
    subagent(0, "continuable", created_at=1),
]
"""A child of the root that has three, made in another order than they are listed in."""
OUTGROWN = [
    subagent(-1, "continuable", later=("labelled",)),
    subagent(-1, "continuable", later=("broken",)),
    subagent(-1, "broken", later=("continuable",)),
    subagent(-1, "continuable", later=("labelled",), live=True),
    subagent(-1, "continuable", "long", "long", later=("long",), damage="frame"),
]
"""Checkpoints that are older than their logs."""
WORLDS = st.lists(SESSIONS, min_size=1, max_size=LARGEST)
SETTINGS = st.builds(
    Setting, checkpointed=st.booleans(), cached=st.booleans(), small_frames=st.booleans()
)
HAPPENINGS = st.builds(
    Happening,
    between=st.lists(st.tuples(st.integers(0, LARGEST), OPERATIONS), max_size=3).map(tuple),
    at_reading=st.dictionaries(st.integers(0, LARGEST), OPERATIONS, max_size=3),
    aside=st.dictionaries(
        st.integers(0, LARGEST), st.tuples(st.integers(0, LARGEST), OPERATIONS), max_size=3
    ),
)
CANCELLATIONS = st.builds(
    attrs.evolve, HAPPENINGS, cancel_at=st.integers(0, 6), by_token=st.booleans()
)
ASIDE = Happening(aside={1: (2, "append"), 3: (2, "dispose")})
"""A live child gets another label, or is disposed of, while its siblings are read."""


@pytest.mark.parametrize("examples", [25, pytest.param(2000, marks=FULL)])
def test_the_listing_equals_a_fold_of_every_whole_log(examples: int, watched: Watched) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(world=WORLDS, setting=SETTINGS)
    @example(world=INHERITED, setting=Setting(checkpointed=True, cached=True))
    @example(world=SIBLINGS, setting=Setting(checkpointed=True, cached=True))
    @example(world=OUTGROWN, setting=Setting(checkpointed=True, cached=True))
    @example(world=OUTGROWN, setting=Setting(checkpointed=True, cached=True, small_frames=True))
    def holds(world: list[Planned], setting: Setting) -> None:
        asyncio.run(compare(world, setting, watched))

    holds()


@pytest.mark.parametrize("examples", [25, pytest.param(2000, marks=FULL)])
def test_it_does_whatever_happens_between_the_enumeration_and_the_reading(
    examples: int, watched: Watched
) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(world=WORLDS, setting=SETTINGS, happening=HAPPENINGS, tree=st.booleans())
    @example(
        world=SIBLINGS,
        setting=Setting(checkpointed=False, cached=False),
        happening=ASIDE,
        tree=True,
    )
    def holds(world: list[Planned], setting: Setting, happening: Happening, *, tree: bool) -> None:
        asyncio.run(compare_once(world, setting, watched, happening, tree=tree))

    holds()


@pytest.mark.parametrize("examples", [15, pytest.param(1000, marks=FULL)])
def test_a_cancelled_listing_is_cancelled_whenever_that_is_and_leaves_nothing_running(
    examples: int, watched: Watched
) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(world=WORLDS, setting=SETTINGS, happening=CANCELLATIONS, tree=st.booleans())
    def holds(world: list[Planned], setting: Setting, happening: Happening, *, tree: bool) -> None:
        asyncio.run(compare_once(world, setting, watched, happening, tree=tree))

    holds()


async def compare(world: Sequence[Planned], setting: Setting, watched: Watched) -> None:
    async with prepared(world, setting, watched) as (stage, _spies):
        logs = await stage.logs()
        oracle = Oracle(logs, logs, stage.live(), stage.kept)
        for root in ("root", *stage.names, "nobody"):
            for tree in (False, True):
                listed = await stage.list(root, tree=tree)
                told = attrs.evolve(oracle, unavailable=unavailable(listed))
                assert listed == told.rows(root, tree=tree)


async def compare_once(
    world: Sequence[Planned],
    setting: Setting,
    watched: Watched,
    happening: Happening,
    *,
    tree: bool,
) -> None:
    """List once while something happens, and ask the oracle about what was there to be seen."""
    async with prepared(world, setting, watched) as (stage, spies):
        token = CancelToken()
        logs = await stage.logs()
        listing = asyncio.ensure_future(stage.list("root", tree=tree, cancel=token))
        cancel = token.cancel if happening.by_token else listing.cancel
        scene = Scene(stage, happening, logs, cancel)
        spies.after_listing = scene.enumerated
        spies.before_observing = scene.reading
        spies.while_observing = scene.read
        try:
            listed = await listing
        except Cancelled:
            assert happening.by_token
            assert scene.cancelled
        except asyncio.CancelledError:
            assert not happening.by_token
            assert scene.cancelled
        else:
            assert not scene.cancelled
            oracle = attrs.evolve(scene.oracle(), unavailable=unavailable(listed))
            assert listed == oracle.rows("root", tree=tree)
        assert spies.in_flight == 0
        assert spies.most_in_flight <= 4
        assert len(set(spies.observed)) == len(spies.observed)
        assert not {*spies.observed} & scene.live


def unavailable(listed: Sequence[Any]) -> frozenset[str]:
    return frozenset(row["id"] for row in listed if row.get("reason") == "unavailable")


@attrs.frozen
class Log:
    """A whole log, what cannot be read any more filled in as it was."""

    header: Header
    cut: LogOffset
    events: Mapping[int, tuple[str, Any]]
    hidden: bool = False
    """Whether what cannot be read is a descriptor, or nothing tells that it is none."""

    def identity(self) -> dict[str, Any] | None:
        """Fold every event, knowing from the plan which descriptors are sound."""
        found = None
        for seq, (kind, data) in sorted(self.events.items()):
            if kind == DESCRIPTOR:
                sound = data == LATE or any(data == DATA[name] for name in SOUND)
                found = data | {"seq": seq} if sound else None
        return found if found is not None and found["seq"] >= self.cut else None


Logs = Mapping[str, Log]


@attrs.define
class Stage:
    """A host whose sessions can be listed, and what is on its disk."""

    host: Host
    home: Path
    names: tuple[str, ...]
    intact: Logs
    """The logs before any was damaged."""
    broken: Mapping[str, Sequence[int]]
    """The events of the frame that was damaged, if one was."""
    kept: dict[str, Log] | None
    """Each log as it was when its checkpoint was made, if the listing may look at those."""
    _one_by_one: asyncio.Lock = attrs.field(factory=asyncio.Lock)

    @property
    def store(self) -> SessionStore:
        return self.host.scope.require(session_store)

    def live(self) -> set[str]:
        return {session.id for session in self.store.live()}

    async def list(self, root: str, *, tree: bool, cancel: CancelToken | None = None) -> Any:
        service = self.host.scope.require(subagents)
        call = service.list_descendants if tree else service.list_children
        return msgspec.to_builtins(await call(SessionId(root), cancel=cancel))

    async def logs(self) -> dict[str, Log]:
        found = {name: await self.log(name) for name in self.names}
        return {name: log for name, log in found.items() if log is not None}

    async def log(self, name: str) -> Log | None:
        """Read a log whole from storage, where live ones are flushed too; None if it is not one."""
        storage = self.host.scope.require(session_persistence)
        damages: list[Damage] = []
        try:
            stored = await storage.read(SessionId(name))
        except HealdError:
            return None
        async with stored:
            batches = stored.batches(on_damage=damages.append)
            found = [(int(e.seq), e.type, e.data) async for batch in batches for e in batch]
        live = self.store.get(SessionId(name))
        header = stored.header if live is None else live.header
        events: Mapping[int, tuple[str, Any]] = {}
        if name in self.intact and self.intact[name].header.log_id == header.log_id:
            events = self.intact[name].events
        lost = [events[seq][0] for seq in self.broken.get(name) or events if seq in events]
        hidden = bool(damages) and DESCRIPTOR in lost
        read = {seq: (kind, data) for seq, kind, data in found}
        return Log(header, stored.cut, {**events, **read}, hidden)

    async def operate(self, name: str, operation: Operation) -> None:
        """Do one thing to one session, as far as its state allows."""
        async with self._one_by_one:
            with contextlib.suppress(HealdError):
                await self._operate(SessionId(name), operation)

    async def _operate(self, id: SessionId, operation: Operation) -> None:  # noqa: A002
        session = self.store.get(id)
        if operation == "append":
            writing = session or await self.store.resume(id)
            append_unchecked(writing, DESCRIPTOR, LATE)
            await self.dispose(writing)
        elif operation == "resume":
            await self.store.resume(id)
        elif session is not None:
            await self.dispose(session)
        if operation in ("delete", "replace"):
            shutil.rmtree(self.home / "sessions" / id, ignore_errors=True)
        if operation == "replace":
            first = [NewEvent(DESCRIPTOR, DATA["labelled"])]
            await self.dispose(await self.store.create(cwd="/anew", id=id, first=first))

    async def dispose(self, session: Session) -> None:
        """Let a live session go, which makes a checkpoint of it."""
        await self.store.dispose(session)
        log = await self.log(session.id)
        if self.kept is not None and log is not None:
            self.kept[session.id] = log


@attrs.define
class Scene:
    """Makes things happen while a listing goes on, and notes what there was to be seen."""

    stage: Stage
    happening: Happening
    enumerable: Logs
    """The logs when the enumeration began."""
    cancel: Callable[[], object]
    cancelled: bool = False
    kept: Logs | None = None
    paired: Logs = attrs.field(factory=dict)
    live: set[str] = attrs.field(factory=set)
    observed: dict[str, Log | None] = attrs.field(factory=dict)
    became_live: set[str] = attrs.field(factory=set)
    _moments: int = 0

    def _moment(self) -> None:
        if self._moments == self.happening.cancel_at:
            self.cancelled = True
            self.cancel()
        self._moments += 1

    async def enumerated(self) -> None:
        for number, operation in self.happening.between:
            await self.stage.operate(self._name(number), operation)
        self.paired, self.live = await self.stage.logs(), self.stage.live()
        self.kept = None if self.stage.kept is None else dict(self.stage.kept)
        self._moment()

    async def reading(self, id: SessionId) -> None:  # noqa: A002
        asked = self.happening.at_reading.items()
        names: dict[str, Operation] = {self._name(number): op for number, op in asked}
        for number, (other, operation) in self.happening.aside.items():
            if id == self._name(number) and self._name(other) in self.live:
                await self.stage.operate(self._name(other), operation)
        if id in names:
            await self.stage.operate(id, names[id])
        self.observed[id] = await self.stage.log(id)
        if id in self.stage.live():
            self.became_live.add(id)
        self._moment()

    async def read(self, _: SessionId) -> None:
        self._moment()

    def _name(self, number: int) -> str:
        return self.stage.names[number % len(self.stage.names)]

    def oracle(self) -> Oracle:
        return Oracle(
            self.enumerable, self.paired, self.live, self.kept, self.observed, self.became_live
        )


@attrs.frozen
class Oracle:
    """Says what a listing must say of the logs that there were."""

    enumerable: Logs
    paired: Logs
    live: set[str]
    kept: Logs | None
    observed: Mapping[str, Log | None] | None = None
    """The logs when they were read, None if nothing could have happened to them."""
    became_live: set[str] = attrs.field(factory=set)
    unavailable: frozenset[str] = frozenset()
    """Which were listed so: of a damaged log a checkpoint may make a part enough, or not."""

    def header(self, name: str) -> Header:
        return (self.paired if name in self.live else self.enumerable)[name].header

    def _below(self, parent: str) -> list[str]:
        found = [name for name in self.enumerable if self.header(name).parent_session == parent]
        return sorted(found, key=lambda name: (self.header(name).created_at, name))

    def _is_subagent(self, name: str) -> bool:
        return self.header(name).origin == "subagent"

    def rows(self, root: str, *, tree: bool) -> list[Any]:
        told = (
            [self._row(name, {}) for name in self._below(root) if self._is_subagent(name)]
            if not tree
            else [
                self._row(name, {"parent_id": parent, "depth": depth})
                for name, parent, depth in self._walk(root, 1, {root})
                if self._is_subagent(name)
            ]
        )
        return [row for row in told if row is not None]

    def _walk(self, parent: str, depth: int, visited: set[str]) -> Iterator[tuple[str, str, int]]:
        for name in self._below(parent):
            if name not in visited:
                visited.add(name)
                yield name, parent, depth
                yield from self._walk(name, depth + 1, visited)

    def _row(self, name: str, place: dict[str, Any]) -> Any:
        found = self._found(name)
        if found is None:
            return None
        if isinstance(found, str):
            return {"kind": "diagnostic", "id": name, "reason": found} | place
        row = {
            "kind": "child",
            "id": name,
            "activity": "running" if name in self.live else "inactive",
            "has_children": any(self._is_subagent(below) for below in self._below(name)),
            "mode": found["mode"],
        }
        return row | ({"label": found["label"]} if "label" in found else {}) | place

    def _found(self, name: str) -> Any:
        """Return an identity, a reason why there is none, or None for one being created."""
        if name in self.live:
            return self.paired[name].identity()
        enumerated = self.header(name)
        kept = self._kept(name, enumerated)
        if kept is not None and not enumerated.is_seeded and (identity := kept.identity()):
            assert name not in (self.observed or ())
            return identity
        log = self.paired[name] if self.observed is None else self.observed[name]
        if log is None:
            return "unavailable"
        if log.hidden and (kept is None or name in self.unavailable):
            return "unavailable"
        if log.header != enumerated:
            return "corrupt"
        return log.identity() or (None if name in self.became_live else "corrupt")

    def _kept(self, name: str, header: Header) -> Log | None:
        kept = (self.kept or {}).get(name)
        return kept if kept is not None and kept.header.log_id == header.log_id else None


@contextlib.asynccontextmanager
async def prepared(
    world: Sequence[Planned], setting: Setting, watched: Watched
) -> AsyncIterator[tuple[Stage, Spies]]:
    """Make a world, damage what is planned to be, and open it again for a listing."""
    names = tuple(f"s{number}" for number in range(len(world)))
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        async with opened(home, watched()[1], setting, cache=setting.checkpointed) as host:
            for number, planned in enumerate(world):
                await make(host, planned, number, len(world))
            kept = await Stage(host, home, names, {}, {}, None).logs()
        async with opened(home, watched()[1], setting, cache=False) as host:
            for name, planned in zip(names, world, strict=True):
                await go_on(host, SessionId(name), planned)
            intact = await Stage(host, home, names, {}, {}, None).logs()
        places = [home / "sessions" / name for name in names]
        broken = {p.name: [*damage(p, planned)] for p, planned in zip(places, world, strict=True)}
        leave_a_birth_unfinished(home / "sessions")
        spies, discovery = watched()
        async with opened(home, discovery, setting, cache=setting.cached) as host:
            for name, planned in zip(names, world, strict=True):
                if planned.live:
                    await take(host, SessionId(name), planned)
            had = kept if setting.checkpointed else {}
            seen = had if setting.cached else None
            yield Stage(host, home, names, intact, broken, seen), spies


def opened(home: Path, discovery: Discovery, setting: Setting, *, cache: bool) -> Any:
    names = ["projection-cache"] * cache + ["projection", "query"]
    rows = [Row(name, name) for name in ("session", "subagent")]
    rows.append(
        Row("persistence", "persistence", {"seal_bytes": 2000} if setting.small_frames else {})
    )
    rows += [Row(name, f"spied-{name}") for name in names]
    return open_host(home=home, rows=rows, env={}, discovery=discovery, strict=True)


async def make(host: Host, planned: Planned, number: int, many: int) -> None:
    """Make a planned session; the negative parents are the root."""
    store, name = host.scope.require(session_store), SessionId(f"s{number}")
    parent = SessionId(f"s{planned.parent % many}" if planned.parent >= 0 else "root")
    origin = "subagent" if planned.subagent else None
    host.now = lambda: planned.created_at

    def change(header: Header) -> Header:
        return msgspec.structs.replace(header, parent_session=parent, origin=origin)

    session: Session | None = None
    if planned.inherits is not None and number > 0:
        source = SessionId(f"s{planned.inherits % number}")
        with contextlib.suppress(LogNeedsPlugin):
            session = await store.fork(source, id=name, header=change, first=[TURN, TURN_END])
    if session is None:
        first = [TURN, TURN_END]
        session = await store.create(
            cwd=None, id=name, parent_session=parent, origin=origin, first=first
        )
    for kind in planned.events:
        write(session, kind)
    for ended in (TURN, TURN_END):  # a fork inherits what comes before the end of a turn
        session.append(ended.type, ended.data)
    await session.flush()
    await store.dispose(session)


async def go_on(host: Host, name: SessionId, planned: Planned) -> None:
    """Append what came later, if the session can be written."""
    store = host.scope.require(session_store)
    if planned.later:
        with contextlib.suppress(LogNeedsPlugin):
            session = await store.resume(name)
            for kind in planned.later:
                write(session, kind)
            for ended in (TURN, TURN_END):
                session.append(ended.type, ended.data)
            await store.dispose(session)


async def take(host: Host, name: SessionId, planned: Planned) -> None:
    """Resume a session if that can be, and let its stored header become another if planned."""
    with contextlib.suppress(HealdError):  # damaged, or it needs a plugin
        await host.scope.require(session_store).resume(name)
        if planned.conflict:
            path = host.home / "sessions" / name / "session.json"
            facts = json.loads(path.read_bytes())
            facts["header"]["parent_session"] = "elsewhere"
            facts["header"]["agent_preset"] = "other"
            path.write_text(json.dumps(facts))


DESCRIPTOR = "subagent/descriptor"
TURN = NewEvent("turn/start", {"turn": 1})
TURN_END = NewEvent("turn/end", {"turn": 1, "outcome": "completed"})


def write(session: Session, kind: str) -> None:
    """Append what a kind of event is, as a foreign writer would."""
    if kind in DATA:
        append_unchecked(session, DESCRIPTOR, DATA[kind])
    elif kind == "compacted":
        message = {"id": f"m{session.end}", "text": "hello"}
        seq = append_unchecked(session, "user/message", message, surface=APPEND).seq
        replaced = Surface("replace", seq, seq)
        append_unchecked(session, "user/message", message, surface=replaced, sources=(seq,))
    elif kind == "long":
        append_unchecked(session, "turn/start", {"turn": 1, "note": "x" * 1500})
    else:
        append_unchecked(session, "gone/thing", {"mode": "one-shot"}, required=kind == "needed")


def damage(place: Path, planned: Planned) -> Iterator[int]:
    """Damage a stored session as planned, and yield the events whose frame that was.

    A line that is damaged is not the last, so it was no torn write.
    """
    if planned.damage == "header":
        (place / "session.json").write_text("{")
    elif planned.damage == "descriptor":
        tail, good = place / "tail.jsonl", (place / "tail.jsonl").read_bytes()
        if b'"version"' in good:
            tail.write_bytes(good.replace(b'"version"', b'"vorsion"') + b"\n")
    elif planned.damage == "frame" and (log := place / "log.jsonl.zst").exists():
        data = bytearray(log.read_bytes())
        blocks = blocks_in(data)
        _, frame, stop, zone = blocks[planned.created_at % len(blocks)]
        data[(frame + stop) // 2] ^= 1
        log.unlink()  # a fork has the same bytes
        log.write_bytes(data)
        yield from range(zone["first"], zone["first"] + zone["count"])


def leave_a_birth_unfinished(sessions: Path) -> None:
    """Leave what a process leaves that is killed while it makes a child."""
    for stored in sorted(sessions.iterdir()):
        if (stored / "session.json").exists():
            shutil.copytree(stored, sessions / ".half.0123456789abcdef")
            return
