"""The suite that every storage backend must pass: subclass it and say what the backend is.

class TestMyBackend(PersistenceContract):
    @pytest.fixture
    def backend(self) -> SessionPersistence:
        return MyBackend(...)
"""

# ruff: noqa: PLR2004 - the suite counts what it made

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from heald import Cancelled, CancelToken
from heald_persistence.contracts import LogWriter, SessionPersistence
from heald_persistence.errors import SessionBusy
from heald_session import (
    FORMAT_VERSION,
    Event,
    Header,
    LogOffset,
    Seq,
    SessionClosed,
    SessionId,
    SessionIdTaken,
    SessionNotFound,
    Surface,
)

ODD_IDS = ("a/b", "..", ".", "../../up", "~", ".hidden", "x" * 300, "\x00\n", "naïve", "🧵", " ")
"""Ids that must name a session and nothing else."""


def make_header(id: str = "one", **facts: Any) -> Header:  # noqa: A002
    """Make a header as a session store would."""
    log_id = f"log of {id}"
    return Header(
        version=FORMAT_VERSION,
        id=SessionId(id),
        log_id=log_id,
        created_at=1_700_000_000_000,
        **facts,
    )


def make_events(count: int, start: int = 0, type: str = "acme/note") -> list[Event]:  # noqa: A002
    """Make events that continue a log at `start`."""
    return [
        Event(Seq(seq), type, 1_700_000_000_000 + seq, _encoded({"n": seq, "text": "é\n" * seq}))
        for seq in range(start, start + count)
    ]


async def read_all(
    backend: SessionPersistence,
    id: str = "one",  # noqa: A002
    **selection: Any,
) -> list[Event]:
    """Read a stored log's events."""
    async with await backend.read(SessionId(id)) as log:
        return [event async for batch in log.batches(**selection) for event in batch]


async def store(
    backend: SessionPersistence,
    events: Sequence[Event],
    id: str = "one",  # noqa: A002
    **facts: Any,
) -> None:
    """Store a session and let it go."""
    writer = await backend.create(make_header(id, **facts), LogOffset(0))
    writer.append(events)
    await writer.flush()
    await writer.close()


def same(found: Sequence[Event], wanted: Sequence[Event]) -> bool:
    """Compare events with the bytes of their data."""
    return [_whole(event) for event in found] == [_whole(event) for event in wanted]


def _whole(event: Event) -> tuple[bytes, bytes]:
    return msgspec.json.encode(event), bytes(event.encoded)


def _encoded(data: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(data))


@pytest.mark.asyncio
class PersistenceContract:
    """What must be true of a backend; every test gets a fresh, empty one."""

    @pytest.fixture
    def backend(self) -> SessionPersistence:
        """Return the backend under test."""
        raise NotImplementedError

    async def test_what_was_flushed_is_read_back_byte_for_byte(
        self, backend: SessionPersistence
    ) -> None:
        events = make_events(5)
        await store(backend, events)
        assert same(await read_all(backend), events)

    async def test_every_member_of_an_event_survives(self, backend: SessionPersistence) -> None:
        odd = Event(
            Seq(1),
            "nobody/knows",
            7,
            msgspec.Raw(b'{"b": 1.0, "a":[1e2,"\\u00e9"]}'),
            v=3,
            required=True,
            surface=Surface("replace", Seq(0), Seq(0)),
            sources=(Seq(0),),
        )
        events = [*make_events(1), odd]
        await store(backend, events)
        assert same(await read_all(backend), events)

    async def test_header_and_cut_are_kept(self, backend: SessionPersistence) -> None:
        header = make_header(
            cwd="/a",
            parent_session=SessionId("p"),
            is_seeded=True,
            delegation_depth=2,
            origin="subagent",
            agent_preset="standard",
        )
        writer = await backend.create(header, LogOffset(2))
        writer.append(make_events(3))
        await writer.flush()
        await writer.close()
        async with await backend.read(header.id) as log:
            assert (log.header, log.cut, log.end) == (header, 2, 3)
        assert [(s.name, s.header, s.cut, s.problem) for s in await backend.list()] == [
            ("one", header, 2, None)
        ]

    async def test_a_session_that_logged_nothing_is_not_stored_and_its_id_is_free(
        self, backend: SessionPersistence
    ) -> None:
        writer = await backend.create(make_header(), LogOffset(0))
        await writer.flush()
        assert list(await backend.list()) == []
        await writer.close()
        with pytest.raises(SessionNotFound):
            await backend.read(SessionId("one"))
        await store(backend, make_events(1))

    async def test_nothing_is_stored_before_the_first_flush(
        self, backend: SessionPersistence
    ) -> None:
        writer = await backend.create(make_header(), LogOffset(0))
        writer.append(make_events(2))
        assert list(await backend.list()) == []
        assert writer.flushed == 0
        await writer.flush()
        assert writer.flushed == 2
        assert writer.not_saved is None
        await writer.close()

    async def test_closing_stores_what_is_queued(self, backend: SessionPersistence) -> None:
        writer = await backend.create(make_header(), LogOffset(0))
        writer.append(make_events(2))
        await writer.close()
        await writer.close()
        assert len(await read_all(backend)) == 2

    async def test_discarding_stores_nothing_and_frees_the_id(
        self, backend: SessionPersistence
    ) -> None:
        writer = await backend.create(make_header(), LogOffset(0))
        writer.append(make_events(2))
        await writer.discard()
        assert list(await backend.list()) == []
        await store(backend, make_events(1))

    async def test_a_closed_writer_takes_nothing(self, backend: SessionPersistence) -> None:
        writer = await backend.create(make_header(), LogOffset(0))
        await writer.close()
        with pytest.raises(SessionClosed):
            writer.append(make_events(1))

    async def test_events_that_do_not_continue_the_log_are_refused(
        self, backend: SessionPersistence
    ) -> None:
        writer = await backend.create(make_header(), LogOffset(0))
        with pytest.raises(ValueError, match="continue"):
            writer.append(make_events(1, start=1))
        writer.append(make_events(1))
        await writer.close()
        assert len(await read_all(backend)) == 1

    async def test_an_id_is_taken_while_its_session_is_being_made_and_once_it_is_stored(
        self, backend: SessionPersistence
    ) -> None:
        writer = await backend.create(make_header(), LogOffset(0))
        with pytest.raises(SessionIdTaken):
            await backend.create(make_header(), LogOffset(0))
        writer.append(make_events(1))
        await writer.close()
        with pytest.raises(SessionIdTaken):
            await backend.create(make_header(), LogOffset(0))

    async def test_a_stored_session_is_gone_on_with_after_its_last_event(
        self, backend: SessionPersistence
    ) -> None:
        await store(backend, make_events(2))
        writer = await backend.open(SessionId("one"))
        assert writer.flushed == 2
        writer.append(make_events(2, start=2))
        await writer.flush()
        await writer.close()
        assert same(await read_all(backend), make_events(4))

    async def test_a_second_writer_is_refused_and_the_first_goes_on(
        self, backend: SessionPersistence
    ) -> None:
        writer = await _open_with(backend, make_events(1))
        with pytest.raises(SessionBusy) as refused:
            await backend.open(SessionId("one"))
        assert refused.value.owner
        writer.append(make_events(1, start=1))
        await writer.flush()
        await writer.close()
        again = await backend.open(SessionId("one"))
        assert again.flushed == 2
        await again.close()

    async def test_an_unknown_session_is_not_found(self, backend: SessionPersistence) -> None:
        with pytest.raises(SessionNotFound):
            await backend.open(SessionId("nobody"))
        with pytest.raises(SessionNotFound):
            await backend.read(SessionId("nobody"))

    async def test_a_reader_keeps_the_moment_it_was_opened_at(
        self, backend: SessionPersistence
    ) -> None:
        writer = await _open_with(backend, make_events(2))
        async with await backend.read(SessionId("one")) as log:
            writer.append(make_events(2, start=2))
            await writer.flush()
            assert log.end == 2
            assert [e.seq async for batch in log.batches() for e in batch] == [0, 1]
        assert len(await read_all(backend)) == 4
        await writer.close()

    async def test_a_range_is_read(self, backend: SessionPersistence) -> None:
        await store(backend, make_events(10))
        found = await read_all(backend, start=LogOffset(3), stop=LogOffset(7))
        assert [event.seq for event in found] == [3, 4, 5, 6]
        assert await read_all(backend, start=LogOffset(10)) == []
        assert await read_all(backend, start=LogOffset(4), stop=LogOffset(4)) == []
        assert len(await read_all(backend, stop=LogOffset(99))) == 10

    async def test_events_of_chosen_types_are_read_in_order(
        self, backend: SessionPersistence
    ) -> None:
        rare = make_events(1, start=4, type="acme/rare")
        await store(backend, [*make_events(4), *rare, *make_events(4, start=5)])
        assert same(await read_all(backend, types={"acme/rare"}), rare)
        assert await read_all(backend, types=()) == []

    async def test_many_events_come_in_batches_and_reading_them_is_counted(
        self, backend: SessionPersistence
    ) -> None:
        events = make_events(300)
        await store(backend, [e for e in events if e.seq < 300])
        async with await backend.read(SessionId("one")) as log:
            before = log.bytes_read
            batches = [batch async for batch in log.batches()]
            assert log.bytes_read - before >= sum(len(event.encoded) for event in events)
            assert log.frames_decoded >= 1
        assert all(batches)
        assert same([event for batch in batches for event in batch], events)

    async def test_a_cancelled_read_ends(self, backend: SessionPersistence) -> None:
        await store(backend, make_events(1))
        cancel = CancelToken()
        cancel.cancel("enough")
        with pytest.raises(Cancelled):
            await read_all(backend, cancel=cancel)
        with pytest.raises(Cancelled):
            await backend.list(cancel=cancel)

    @pytest.mark.parametrize("odd", ODD_IDS, ids=ascii)
    async def test_an_odd_id_round_trips(self, backend: SessionPersistence, odd: str) -> None:
        await store(backend, make_events(1), odd)
        assert [stored.name for stored in await backend.list()] == [odd]
        writer = await backend.open(SessionId(odd))
        await writer.close()
        assert len(await read_all(backend, odd)) == 1

    async def test_sessions_do_not_meet(self, backend: SessionPersistence) -> None:
        for name in ("a", "b", "c"):
            await store(backend, make_events(1, type=f"acme/{name}"), name)
        assert sorted(stored.name for stored in await backend.list()) == ["a", "b", "c"]
        assert [event.type for event in await read_all(backend, "b")] == ["acme/b"]


async def _open_with(backend: SessionPersistence, events: Sequence[Event]) -> LogWriter:
    writer = await backend.create(make_header(), LogOffset(0))
    writer.append(events)
    await writer.flush()
    return writer
