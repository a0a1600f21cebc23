"""Whatever the world, and whatever happens in it: the listing says what every whole log says.

The oracle knows headers, what is live, and each log whole, with what of it cannot be read any
more. It knows nothing of cells, of checkpoints, or of how a listing reads. Where a listing may be
behind because of a checkpoint is said apart, by what was written, checkpointed and damaged, and
when. Neither is told anything of what the listing answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heald import Cancelled, CancelToken, Discovery, HealdError, Host, Row, open_host
from heald_persistence import Damage, session_persistence
from heald_persistence.testing import blocks_in, make_header
from heald_session import (
    APPEND,
    Event,
    Header,
    LogNeedsPlugin,
    LogOffset,
    NewEvent,
    Seq,
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
    born: str | None = None
    """Which sound descriptor is the very first of its own events, if one is."""
    from_start: bool = False
    """Whether it inherits none of the events of what it is a fork of: its cut is 0."""


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
    born=st.sampled_from([None, *SOUND]),
    from_start=st.sampled_from([False, False, True]),
)


def subagent(parent: int, *events: str, inherits: int | None = None, **more: Any) -> Planned:
    """Plan a cold subagent that is well, except as is said."""
    facts: dict[str, Any] = {"created_at": 0, "live": False, "damage": None} | more
    return Planned(parent, inherits, subagent=True, events=events, **facts)


INHERITED = [
    subagent(-1, "continuable"),
    subagent(-1, inherits=0, live=True),
    subagent(-1, inherits=0),
    subagent(-1, inherits=0, born="labelled"),
    subagent(-1, inherits=0, born="labelled", live=True),
    subagent(-1, inherits=0, born="labelled", later=("continuable",), from_start=True),
]
"""An identity, two sessions that have it from an ancestor only, and three with one of their own."""
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
DAMAGED = [
    subagent(-1, "continuable", "long", "long", damage="frame"),
    subagent(-1, "continuable", "long", "long", "foreign", damage="frame", created_at=1),
    subagent(-1, "broken", "long", "long", "foreign", damage="frame"),
    subagent(-1, "broken", "long", later=("long", "continuable", "long"), damage="frame"),
    subagent(-1, "broken", "long", later=("long",), damage="descriptor"),
    subagent(-1, "continuable", damage="descriptor"),
    subagent(-1, inherits=0, born="labelled", damage="descriptor"),
    subagent(-1, inherits=0, born="labelled", later=("long", "long"), damage="frame"),
    subagent(-1, *["foreign"] * 8, "broken", damage="frame", created_at=1),
]
"""Frames that hold a descriptor and frames that hold none, before and behind the checkpoint."""
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
UNREADABLE = [subagent(-1, "continuable", damage="header"), subagent(-1, "continuable")]
TAKEN_OVER = Happening(between=((0, "replace"), (0, "resume"), (1, "delete")))
"""One whose header could not be read is made anew and is live; the other is deleted."""
NAMELESS = [subagent(-1, "foreign"), subagent(-1, "broken")]
OPENED = Happening(at_reading={0: "resume"})
"""One of two without an identity goes live just before it is read."""


@pytest.mark.parametrize("examples", [25, pytest.param(2000, marks=FULL)])
def test_the_listing_equals_a_fold_of_every_whole_log(examples: int, watched: Watched) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(world=WORLDS, setting=SETTINGS)
    @example(world=INHERITED, setting=Setting(checkpointed=True, cached=True))
    @example(world=SIBLINGS, setting=Setting(checkpointed=True, cached=True))
    @example(world=OUTGROWN, setting=Setting(checkpointed=True, cached=True))
    @example(world=OUTGROWN, setting=Setting(checkpointed=True, cached=True, small_frames=True))
    @example(world=DAMAGED, setting=Setting(checkpointed=True, cached=True, small_frames=True))
    @example(world=DAMAGED, setting=Setting(checkpointed=False, cached=True, small_frames=True))
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
    @example(
        world=UNREADABLE,
        setting=Setting(checkpointed=True, cached=True),
        happening=TAKEN_OVER,
        tree=False,
    )
    @example(
        world=NAMELESS,
        setting=Setting(checkpointed=False, cached=False),
        happening=OPENED,
        tree=False,
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
        live = stage.live()
        seen = {n: Seen(g.header, g, live=n in live) for n, g in (await stage.logs()).items()}
        oracle = Oracle(seen, older_rows(seen, stage.kept))
        for root in ("root", *stage.names, "nobody"):
            for tree in (False, True):
                assert await stage.list(root, tree=tree) == oracle.rows(root, tree=tree)


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
            seen = scene.seen()
            oracle = Oracle(seen, older_rows(seen, scene.kept))
            assert listed == oracle.rows("root", tree=tree)
        assert spies.in_flight == 0
        assert spies.most_in_flight <= 4
        assert len(set(spies.observed)) == len(spies.observed)
        assert not {*spies.observed} & (scene.live | scene.spared())
        assert not {*spies.cached} & (scene.live | scene.seeded())


Finding: TypeAlias = Mapping[str, Any] | Literal["corrupt", "unavailable"] | None
"""An identity, why there is none, or None for one that is being created."""


@attrs.frozen
class Log:
    """All that can be read of a log."""

    header: Header
    cut: LogOffset
    events: Mapping[int, tuple[str, Any]]
    lost: frozenset[int] = frozenset()
    """The events that were written and cannot be read any more."""
    hidden: bool = False
    """Whether a descriptor may be among those: one was written where they were."""

    @property
    def end(self) -> int:
        return max(self.events) + 1

    def identity(self) -> Mapping[str, Any] | None:
        """Say what the child is, by every event that can be read.

        The last descriptor counts; one that is malformed leaves no identity, not an earlier one;
        one before the cut is an ancestor's.
        """
        found = None
        for seq, (kind, data) in sorted(self.events.items()):
            if kind == DESCRIPTOR:
                sound = data == LATE or any(data == DATA[name] for name in SOUND)
                found = data if sound and seq >= self.cut else None
        return found


Logs = Mapping[str, Log]


@attrs.frozen
class Seen:
    """What there was to be seen of a session that was enumerated."""

    header: Header
    """As it was enumerated, or the live session's if ids were paired with one."""
    log: Log | None
    """As it was when it was read, or at the pairing if it was not; None if it was gone."""
    live: bool
    """Whether it was live when ids were paired."""
    went_live: bool = False
    """Whether it was live when it was read, and not before."""

    def finding(self) -> Finding:
        """Say what the whole log says of the child."""
        if self.log is None or self.log.hidden:
            return "unavailable"
        if self.log.header != self.header:  # another session's, or it became another
            return "corrupt"
        if (identity := self.log.identity()) is not None:
            return identity
        return None if self.live or self.went_live else "corrupt"


def older_rows(seen: Mapping[str, Seen], kept: Logs | None) -> dict[str, Finding]:
    """Say of which children an older row is right, since a checkpoint is behind their logs."""
    found: dict[str, Finding] = {}
    for name, child in seen.items():
        then = (kept or {}).get(name)
        if then is not None and not child.live and then.header.log_id == child.header.log_id:
            older = older_row(child, then)
            if older is not None:
                found[name] = older
    return found


def older_row(child: Seen, then: Log) -> Finding:
    """Say what is right in place of what the whole log says; None if nothing else is.

    `then` is the log as it was checkpointed.
    """
    now = child.log
    if not child.header.is_seeded and (identity := then.identity()) is not None:
        # All that such a child has is its own, so nobody looks behind an identity of it: whether
        # it has a later descriptor, and whether the log is damaged, gone, or of another header.
        behind = (
            now is None
            or now.hidden
            or now.header != child.header
            or any(s >= then.end and kind == DESCRIPTOR for s, (kind, _) in now.events.items())
        )
        return identity if behind else None
    if now is None or not now.hidden or max(now.lost) >= then.end:
        return None
    if then.end - 1 not in now.events:
        return None
    # All that was lost is behind the checkpoint, whose last event tells that it is of this log.
    return attrs.evolve(now, events={**then.events, **now.events}).identity() or "corrupt"


@attrs.frozen
class Struck:
    """The events that were where a log was damaged."""

    log_id: str
    written: Mapping[int, str]
    """Their types, by their seqs."""


@attrs.define
class Stage:
    """A host whose sessions can be listed, and what is on its disk."""

    host: Host
    home: Path
    names: tuple[str, ...]
    struck: Mapping[str, Struck]
    """What was damaged of each log, if anything was."""
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
            read = {int(e.seq): (e.type, e.data) async for batch in batches for e in batch}
        live = self.store.get(SessionId(name))
        header = stored.header if live is None else live.header
        struck = self.struck.get(name)
        written = struck.written if struck and struck.log_id == header.log_id else {}
        lost = written.keys() - read.keys()
        assert bool(lost) == any(damage.count != 0 for damage in damages)
        hidden = bool(lost) and DESCRIPTOR in written.values()
        return Log(header, stored.cut, read, frozenset(lost), hidden)

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

    def seen(self) -> dict[str, Seen]:
        """Return what there was to be seen of each session that was enumerated."""
        read = {**self.paired, **self.observed}
        found = {}
        for name in self.enumerable.keys() | self.live:
            live, went_live = name in self.live, name in self.became_live
            if (header := self._enumerated(name)) is not None:
                found[name] = Seen(header, read.get(name), live=live, went_live=went_live)
        return found

    def spared(self) -> set[str]:
        """Return those that inherited nothing and whose checkpoints had an identity."""
        return {
            name
            for name, then in (self.kept or {}).items()
            if (header := self._enumerated(name)) is not None
            and not header.is_seeded
            and header.log_id == then.header.log_id
            and then.identity() is not None
        }

    def seeded(self) -> set[str]:
        """Return those that inherited something, or could have."""
        found = {name: self._enumerated(name) for name in self.enumerable}
        return {name for name, header in found.items() if header and header.is_seeded}

    def _enumerated(self, name: str) -> Header | None:
        log = (self.paired if name in self.live else self.enumerable).get(name)
        return None if log is None else log.header


@attrs.frozen
class Oracle:
    """Says what a listing must say of what there was to be seen."""

    seen: Mapping[str, Seen]
    older: Mapping[str, Finding]
    """What is right of some instead of what their whole logs say."""

    def _below(self, parent: str) -> list[str]:
        found = [n for n, child in self.seen.items() if child.header.parent_session == parent]
        return sorted(found, key=lambda name: (self.seen[name].header.created_at, name))

    def _is_subagent(self, name: str) -> bool:
        return self.seen[name].header.origin == "subagent"

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
        child = self.seen[name]
        found = self.older.get(name) or child.finding()
        if found is None:
            return None
        if isinstance(found, str):
            return {"kind": "diagnostic", "id": name, "reason": found} | place
        row = {
            "kind": "child",
            "id": name,
            "activity": "running" if child.live else "inactive",
            "has_children": any(self._is_subagent(below) for below in self._below(name)),
            "mode": found["mode"],
        }
        return row | ({"label": found["label"]} if "label" in found else {}) | place


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
            kept = await Stage(host, home, names, {}, None).logs()
        async with opened(home, watched()[1], setting, cache=False) as host:
            for name, planned in zip(names, world, strict=True):
                await go_on(host, SessionId(name), planned)
            intact = await Stage(host, home, names, {}, None).logs()
        struck = {
            name: Struck(log.header.log_id, {seq: log.events[seq][0] for seq in seqs})
            for (name, log), planned in zip(intact.items(), world, strict=True)
            if (seqs := damage(home / "sessions" / name, planned))
        }
        leave_a_birth_unfinished(home / "sessions")
        spies, discovery = watched()
        async with opened(home, discovery, setting, cache=setting.cached) as host:
            for name, planned in zip(names, world, strict=True):
                if planned.live:
                    await take(host, SessionId(name), planned)
            had = kept if setting.checkpointed else {}
            seen = had if setting.cached else None
            yield Stage(host, home, names, struck, seen), spies


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
    first = [NewEvent(DESCRIPTOR, DATA[planned.born])] if planned.born else [TURN, TURN_END]
    if planned.inherits is not None and planned.from_start:
        facts = {"parent_session": parent, "origin": origin, "created_at": planned.created_at}
        await store_seeded(host, make_header(name, is_seeded=True, **facts), first)
        session = await store.resume(name)
    elif planned.inherits is not None and number > 0:
        source = SessionId(f"s{planned.inherits % number}")
        with contextlib.suppress(LogNeedsPlugin):
            session = await store.fork(source, id=name, header=change, first=first)
    if session is None:
        session = await store.create(
            cwd=None, id=name, parent_session=parent, origin=origin, first=first
        )
    for kind in planned.events:
        write(session, kind)
    for ended in (TURN, TURN_END):  # a fork inherits what comes before the end of a turn
        session.append(ended.type, ended.data)
    await session.flush()
    await store.dispose(session)


async def store_seeded(host: Host, header: Header, first: Sequence[NewEvent]) -> None:
    """Store what another writer makes of a fork that inherits no event."""
    writer = await host.scope.require(session_persistence).create(header, LogOffset(0))
    encoded = [(new.type, msgspec.Raw(msgspec.json.encode(new.data))) for new in first]
    writer.append([Event(Seq(n), kind, 0, data) for n, (kind, data) in enumerate(encoded)])
    await writer.close()


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


def damage(place: Path, planned: Planned) -> Sequence[int]:
    """Damage a stored session as planned, and return the events that were there.

    A line that is damaged is not the last, so it was no torn write.
    """
    tail, log = place / "tail.jsonl", place / "log.jsonl.zst"
    if planned.damage == "header":
        (place / "session.json").write_text("{")
    elif planned.damage == "descriptor":
        good = tail.read_bytes()
        struck = [json.loads(line)["seq"] for line in good.splitlines() if b'"version"' in line]
        if struck:
            tail.write_bytes(good.replace(b'"version"', b'"vorsion"') + b"\n")
        return struck
    elif planned.damage == "frame" and log.exists():
        data = bytearray(log.read_bytes())
        blocks = blocks_in(data)
        _, frame, stop, zone = blocks[planned.created_at % len(blocks)]
        data[(frame + stop) // 2] ^= 1
        log.unlink()  # a fork has the same bytes
        log.write_bytes(data)
        return range(zone["first"], zone["first"] + zone["count"])
    return ()


def leave_a_birth_unfinished(sessions: Path) -> None:
    """Leave what a process leaves that is killed while it makes a child."""
    for stored in sorted(sessions.iterdir()):
        if (stored / "session.json").exists():
            shutil.copytree(stored, sessions / ".half.0123456789abcdef")
            return
