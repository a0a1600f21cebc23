"""What must be true of the one handle that writes a session."""

# ruff: noqa: PLR2004 - the suite counts what it made

from __future__ import annotations

import asyncio
import itertools

import msgspec
import pytest

from heald_persistence.contracts import SessionPersistence
from heald_persistence.errors import SessionBusy
from heald_persistence.testing.logs import (
    make_events,
    make_header,
    make_large,
    read_all,
    same,
    store,
    store_open,
)
from heald_session import Event, LogOffset, Seq, SessionClosed, SessionId, SessionNotFound, Surface


class WriterContract:
    """Everything that was flushed is there, in order, once."""

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

    async def test_closing_stores_what_is_queued(self, backend: SessionPersistence) -> None:
        writer = await backend.create(make_header(), LogOffset(0))
        writer.append(make_events(2))
        await writer.close()
        await writer.close()
        assert len(await read_all(backend)) == 2

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
        writer = await store_open(backend, make_events(1))
        with pytest.raises(SessionBusy) as refused:
            await backend.open(SessionId("one"))
        assert refused.value.owner
        writer.append(make_events(1, start=1))
        await writer.flush()
        await writer.close()
        again = await backend.open(SessionId("one"))
        assert again.flushed == 2
        await again.close()

    async def test_many_who_append_and_flush_at_once_keep_the_order(
        self, backend: SessionPersistence
    ) -> None:
        writer = await backend.create(make_header(), LogOffset(0))
        seqs = itertools.count()

        async def produce() -> None:
            for _ in range(20):
                seq = next(seqs)
                writer.append(make_events(1, start=seq))
                await writer.flush()
                assert writer.flushed > seq

        await asyncio.gather(*(produce() for _ in range(8)))
        await writer.close()
        assert same(await read_all(backend), make_events(160))

    async def test_a_log_grows_over_many_openings(self, backend: SessionPersistence) -> None:
        await store(backend, make_events(1))
        for number in range(1, 6):
            writer = await backend.open(SessionId("one"))
            assert writer.flushed == number
            writer.append(make_events(1, start=number))
            await writer.close()
        assert same(await read_all(backend), make_events(6))

    async def test_opening_and_leaving_adds_nothing(self, backend: SessionPersistence) -> None:
        await store(backend, make_events(3))
        for _ in range(3):
            writer = await backend.open(SessionId("one"))
            await writer.flush()
            await writer.close()
        assert same(await read_all(backend), make_events(3))

    async def test_of_many_who_open_one_session_at_once_one_does(
        self, backend: SessionPersistence
    ) -> None:
        await store(backend, make_events(1))
        opened = await asyncio.gather(
            *(backend.open(SessionId("one")) for _ in range(4)), return_exceptions=True
        )
        (writer,) = (one for one in opened if not isinstance(one, BaseException))
        assert sum(isinstance(one, SessionBusy) for one in opened) == 3
        await writer.close()

    @pytest.mark.parametrize("size", [262_143, 262_144, 262_145, 3_000_000])
    async def test_large_data_is_read_back_byte_for_byte(
        self, backend: SessionPersistence, size: int
    ) -> None:
        first = [make_large(size), *make_events(1, start=1), make_large(size, 2)]
        writer = await store_open(backend, first)
        more = [make_large(size, 3), make_large(size, 4, "z"), *make_events(1, start=5)]
        writer.append(more)
        await writer.close()
        assert same(await read_all(backend), first + more)
        again = await backend.open(SessionId("one"))
        assert again.flushed == 6
        await again.close()

    async def test_a_whole_session_has_no_damage_and_nothing_to_salvage(
        self, backend: SessionPersistence
    ) -> None:
        events = [*make_events(20), make_large(400_000, 20)]
        writer = await store_open(backend, events)
        assert list(await backend.verify(SessionId("one"))) == []
        with pytest.raises(SessionBusy):
            await backend.salvage(SessionId("one"))
        await writer.close()
        assert list(await backend.verify(SessionId("one"))) == []
        assert list(await backend.salvage(SessionId("one"))) == []
        assert same(await read_all(backend), events)

    async def test_an_unknown_session_can_be_neither_verified_nor_salvaged(
        self, backend: SessionPersistence
    ) -> None:
        with pytest.raises(SessionNotFound):
            await backend.verify(SessionId("nobody"))
        with pytest.raises(SessionNotFound):
            await backend.salvage(SessionId("nobody"))
