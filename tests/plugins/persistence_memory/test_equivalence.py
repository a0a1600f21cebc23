"""Whatever is done to the backend in memory and the one on disk, they answer the same."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs
import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from heald import HealdError
from heald_persistence import (
    LogWriter,
    SessionPersistence,
    StoredLog,
    StoredSession,
    local,
    waiting,
)
from heald_persistence.testing import make_header, same
from heald_persistence_memory.memory import MemoryPersistence
from heald_session import Event, LogOffset, Seq, SessionId

T = TypeVar("T")
Both = tuple[T, T]

IDS = st.sampled_from([SessionId(name) for name in ("a", "b", "an odd/id")])
TYPES = ("acme/a", "acme/b", "acme/c")
DATA = st.one_of(
    st.integers(-5, 5),
    st.text(max_size=20),
    st.integers(262_140, 262_150).map(lambda size: "x" * (size - 2)),
)
EVENTS = st.lists(st.tuples(st.sampled_from(TYPES), DATA), min_size=1, max_size=4)
OFFSETS = st.integers(0, 12)


@attrs.define
class Writing:
    """A session that both backends write."""

    writers: Both[LogWriter]
    end: int
    born: bool
    """Whether it is stored; what is queued then may be stored at any moment."""
    pending: int = 0


class Backends(RuleBasedStateMachine):
    """Does everything to two backends."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        now = 1_700_000_000_000
        root = Path(self.folder.name, "sessions")
        logger = logging.getLogger(__name__)
        disk = local.LocalPersistence(root, 1 << 24, lambda: now, logger, seal_bytes=400)
        self.backends: Both[SessionPersistence] = (disk, MemoryPersistence())
        self.writing: dict[SessionId, Writing] = {}
        self.held: list[Both[StoredLog]] = []
        self.made = 0

    def teardown(self) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(self.folder.cleanup)
            stack.callback(self.runner.close)
            for log in (log for logs in self.held for log in logs):
                stack.callback(self.runner.run, log.__aexit__(None, None, None))
            for id_ in list(self.writing):
                stack.callback(self.close, id_)

    @rule(id_=IDS, events=EVENTS)
    def create(self, id_: SessionId, events: Sequence[tuple[str, Any]]) -> None:
        header = make_header(id_, log_id=self.fresh())
        writers = self.both(lambda backend: backend.create(header, LogOffset(0)))
        self.take(id_, writers, end=0)
        if writers is not None:
            self.append(id_, events)

    @rule(source=IDS, id_=IDS, cut=OFFSETS)
    def fork(self, source: SessionId, id_: SessionId, cut: int) -> None:
        cut = min(cut, self.durable(source))
        header = make_header(
            id_, log_id=self.fresh(), is_seeded=cut > 0, parent_session=source, cwd="/a"
        )
        writers = self.both(lambda backend: backend.fork(source, LogOffset(cut), header))
        self.take(id_, writers, end=cut, pending=cut)

    @rule(id_=IDS)
    def open(self, id_: SessionId) -> None:
        writers = self.both(lambda backend: backend.open(id_))
        if writers is not None:
            assert writers[0].flushed == writers[1].flushed
            self.take(id_, writers, end=writers[0].flushed, born=True)

    @precondition(lambda self: self.writing)
    @rule(id_=IDS, events=EVENTS)
    def append(self, id_: SessionId, events: Sequence[tuple[str, Any]]) -> None:
        if (writing := self.writing.get(id_)) is not None:
            new = made(events, writing.end)
            self.run(*(_append(writer, new) for writer in writing.writers))
            writing.end += len(new)
            writing.pending += len(new)

    @precondition(lambda self: self.writing)
    @rule(id_=IDS, gap=st.integers(1, 3))
    def append_out_of_order(self, id_: SessionId, gap: int) -> None:
        if (writing := self.writing.get(id_)) is not None:
            new = made([("acme/a", 1)], writing.end + gap)
            for writer in writing.writers:
                with pytest.raises(ValueError, match="continue"):
                    self.run(_append(writer, new))

    @precondition(lambda self: self.writing)
    @rule(id_=IDS)
    def flush(self, id_: SessionId) -> None:
        if (writing := self.writing.get(id_)) is not None:
            self.run(*(writer.flush() for writer in writing.writers))
            assert {writer.flushed for writer in writing.writers} == {writing.end}
            writing.born, writing.pending = writing.end > 0, 0

    @precondition(lambda self: self.writing)
    @rule(id_=IDS)
    def close(self, id_: SessionId) -> None:
        if (writing := self.writing.pop(id_, None)) is not None:
            self.run(*(writer.close() for writer in writing.writers))

    @precondition(lambda self: self.writing)
    @rule(id_=IDS)
    def discard(self, id_: SessionId) -> None:
        writing = self.writing.get(id_)
        if writing is not None and not (writing.born and writing.pending):
            self.run(*(writer.discard() for writer in self.writing.pop(id_).writers))

    @rule(
        id_=IDS,
        start=OFFSETS,
        stop=st.none() | OFFSETS,
        types=st.none() | st.frozensets(st.sampled_from(TYPES)),
    )
    def read(
        self, id_: SessionId, start: int, stop: int | None, types: frozenset[str] | None
    ) -> None:
        if not self.is_settled(id_):
            return
        logs = self.both(lambda backend: backend.read(id_))
        if logs is not None:
            self.compare(logs, start=LogOffset(start), stop=stop, types=types)
            self.run(*(log.__aexit__(None, None, None) for log in logs))

    @rule(id_=IDS)
    def hold(self, id_: SessionId) -> None:
        logs = self.both(lambda backend: backend.read(id_)) if self.is_settled(id_) else None
        if logs is not None:
            self.held.append(logs)

    @precondition(lambda self: self.held)
    @rule(number=st.integers(0, 9))
    def read_held(self, number: int) -> None:
        self.compare(self.held[number % len(self.held)])

    @rule(id_=IDS)
    def delete(self, id_: SessionId) -> None:
        self.both(lambda backend: backend.delete(id_))

    @rule(id_=IDS)
    def restore(self, id_: SessionId) -> None:
        self.both(lambda backend: backend.restore(id_))

    @rule(id_=IDS)
    def verify(self, id_: SessionId) -> None:
        found = self.both(lambda backend: backend.verify(id_))
        assert found is None or not any(found)

    @rule(id_=IDS)
    def salvage(self, id_: SessionId) -> None:
        found = self.both(lambda backend: backend.salvage(id_))
        assert found is None or not any(found)

    @invariant()
    def what_is_listed_is_the_same(self) -> None:
        listed, again = self.run(*(backend.list() for backend in self.backends))
        assert sorted(listed, key=_name) == sorted(again, key=_name)
        trashed, again = self.run(*(backend.trashed() for backend in self.backends))
        assert list(trashed) == list(again)

    def both(self, use: Callable[[SessionPersistence], Coroutine[Any, Any, T]]) -> Both[T] | None:
        """Do something to both; None if both refuse it for the same reason."""
        outcomes = [self.outcome(use(backend)) for backend in self.backends]
        refused = [(type(o), getattr(o, "id", None)) for o in outcomes if isinstance(o, HealdError)]
        assert len(refused) in (0, 2), outcomes
        assert len(set(refused)) < 2, outcomes
        return None if refused else (outcomes[0], outcomes[1])  # type: ignore[return-value]

    def outcome(self, doing: Coroutine[Any, Any, T]) -> T | HealdError:
        try:
            return self.runner.run(doing)
        except HealdError as error:
            return error

    def run(self, *doing: Coroutine[Any, Any, T]) -> list[T]:
        return [self.runner.run(one) for one in doing]

    def take(
        self,
        id_: SessionId,
        writers: Both[LogWriter] | None,
        *,
        end: int,
        born: bool = False,
        pending: int = 0,
    ) -> None:
        if writers is not None:
            self.writing[id_] = Writing(writers, end, born, pending)

    def fresh(self) -> str:
        self.made += 1
        return f"log {self.made}"

    def is_settled(self, id_: SessionId) -> bool:
        writing = self.writing.get(id_)
        return writing is None or not (writing.born and writing.pending)

    def durable(self, id_: SessionId) -> int:
        """Return how long a log is at least."""
        log = self.outcome(self.backends[1].read(id_))
        return 0 if isinstance(log, HealdError) else log.end

    def compare(self, logs: Both[StoredLog], **selection: Any) -> None:
        first, second = logs
        assert (first.header, first.cut, first.end) == (second.header, second.cut, second.end)
        assert same(*self.run(*(_events(log, selection) for log in logs)))


def made(events: Sequence[tuple[str, Any]], start: int) -> list[Event]:
    return [
        Event(Seq(start + n), type_, 1_700_000_000_000 + n, msgspec.Raw(msgspec.json.encode(data)))
        for n, (type_, data) in enumerate(events)
    ]


async def _append(writer: LogWriter, events: Sequence[Event]) -> None:
    writer.append(events)


async def _events(log: StoredLog, selection: dict[str, Any]) -> list[Event]:
    return [event async for batch in log.batches(**selection) for event in batch]


def _name(stored: StoredSession) -> str:
    return stored.name


def test_the_backends_answer_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_BETWEEN_TRIES", 0)
    run_state_machine_as_test(
        Backends,
        settings=settings(
            max_examples=15,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
