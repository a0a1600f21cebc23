"""What must be true of making a session."""

# ruff: noqa: PLR2004 - the suite counts what it made

from __future__ import annotations

import asyncio

import pytest

from heald_persistence.contracts import SessionPersistence
from heald_persistence.testing.logs import (
    ODD_IDS,
    make_events,
    make_header,
    read_all,
    same,
    store,
)
from heald_session import LogOffset, SessionClosed, SessionId, SessionIdTaken, SessionNotFound


class BirthContract:
    """Nothing, or the whole session."""

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

    async def test_discarding_stores_nothing_and_frees_the_id(
        self, backend: SessionPersistence
    ) -> None:
        writer = await backend.create(make_header(), LogOffset(0))
        writer.append(make_events(2))
        await writer.discard()
        assert list(await backend.list()) == []
        await store(backend, make_events(1))

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

    async def test_the_first_events_appear_all_at_once(self, backend: SessionPersistence) -> None:
        events = make_events(50)
        writer = await backend.create(make_header(), LogOffset(0))
        for event in events:
            writer.append([event])
        flushing = asyncio.create_task(writer.flush())
        seen = set()
        while not flushing.done():
            seen.add(len(await read_all(backend)) if await backend.list() else 0)
            await asyncio.sleep(0)
        await flushing
        assert seen <= {0, 50}
        assert same(await read_all(backend), events)
        await writer.close()

    async def test_a_session_in_the_making_can_neither_be_opened_nor_deleted(
        self, backend: SessionPersistence
    ) -> None:
        writer = await backend.create(make_header(), LogOffset(0))
        writer.append(make_events(1))
        with pytest.raises(SessionNotFound):
            await backend.open(SessionId("one"))
        with pytest.raises(SessionNotFound):
            await backend.delete(SessionId("one"))
        await writer.close()
        assert len(await read_all(backend)) == 1

    async def test_of_many_who_make_one_session_at_once_one_does(
        self, backend: SessionPersistence
    ) -> None:
        made = await asyncio.gather(
            *(backend.create(make_header(), LogOffset(0)) for _ in range(10)),
            return_exceptions=True,
        )
        (writer,) = (maker for maker in made if not isinstance(maker, BaseException))
        assert sum(isinstance(maker, SessionIdTaken) for maker in made) == 9
        await writer.close()

    async def test_a_given_up_writer_takes_nothing(self, backend: SessionPersistence) -> None:
        writer = await backend.create(make_header(), LogOffset(0))
        await writer.discard()
        await writer.discard()
        with pytest.raises(SessionClosed):
            writer.append(make_events(1))
        with pytest.raises(SessionClosed):
            await writer.flush()
