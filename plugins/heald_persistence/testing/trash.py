"""What must be true of deleting sessions and bringing them back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heald_persistence.contracts import SessionPersistence, StoredSession
from heald_persistence.errors import SessionBusy
from heald_persistence.testing.logs import (
    ODD_IDS,
    make_events,
    make_header,
    make_large,
    read_all,
    same,
    store,
    store_open,
)
from heald_session import LogOffset, SessionId, SessionIdTaken, SessionNotFound

ONE = SessionId("one")


class TrashContract:
    """What was deleted is out of sight and not gone."""

    async def test_a_deleted_session_is_nowhere_but_in_the_trash(
        self, backend: SessionPersistence
    ) -> None:
        await store(backend, make_events(2))
        await store(backend, make_events(1), "two")
        await backend.delete(ONE)
        assert _ids(await backend.list()) == ["two"]
        assert _ids(await backend.trashed()) == ["one"]
        for use in (backend.read, backend.open, backend.delete, backend.verify):
            with pytest.raises(SessionNotFound):
                await use(ONE)

    async def test_a_restored_session_is_what_it_was(self, backend: SessionPersistence) -> None:
        header = make_header(cwd="/a", is_seeded=True)
        events = [*make_events(3), make_large(500_000, 3)]
        writer = await backend.create(header, LogOffset(2))
        writer.append(events)
        await writer.close()
        await backend.delete(ONE)
        (trashed,) = await backend.trashed()
        await backend.restore(ONE)
        assert list(await backend.trashed()) == []
        (restored,) = await backend.list()
        assert restored == trashed == StoredSession("one", header, LogOffset(2))
        assert same(await read_all(backend), events)
        writer = await backend.open(ONE)
        writer.append(make_events(1, start=4))
        await writer.close()
        assert same(await read_all(backend), [*events, *make_events(1, start=4)])

    async def test_a_live_session_is_not_deleted(self, backend: SessionPersistence) -> None:
        writer = await store_open(backend, make_events(1))
        with pytest.raises(SessionBusy) as refused:
            await backend.delete(ONE)
        assert refused.value.owner
        assert list(await backend.trashed()) == []
        writer.append(make_events(1, start=1))
        await writer.close()
        assert same(await read_all(backend), make_events(2))
        await backend.delete(ONE)

    async def test_what_is_not_there_is_neither_deleted_nor_restored(
        self, backend: SessionPersistence
    ) -> None:
        await store(backend, make_events(1))
        with pytest.raises(SessionNotFound):
            await backend.delete(SessionId("nobody"))
        with pytest.raises(SessionNotFound):
            await backend.restore(ONE)
        assert list(await backend.trashed()) == []
        assert len(await read_all(backend)) == 1

    async def test_a_deleted_id_is_free_and_its_next_session_has_nothing_of_the_last(
        self, backend: SessionPersistence
    ) -> None:
        await store(backend, make_events(5))
        await backend.delete(ONE)
        await store(backend, make_events(1, type="acme/new"), log_id="new")
        assert same(await read_all(backend), make_events(1, type="acme/new"))
        (stored,) = await backend.list()
        assert stored.header == make_header(log_id="new")

    async def test_nothing_is_restored_over_another_session(
        self, backend: SessionPersistence
    ) -> None:
        await store(backend, make_events(2))
        await backend.delete(ONE)
        writer = await backend.create(make_header(log_id="new"), LogOffset(0))
        with pytest.raises(SessionIdTaken):
            await backend.restore(ONE)
        writer.append(make_events(1))
        await writer.flush()
        with pytest.raises(SessionIdTaken):
            await backend.restore(ONE)
        await writer.close()
        with pytest.raises(SessionIdTaken):
            await backend.restore(ONE)
        assert same(await read_all(backend), make_events(1))
        assert _ids(await backend.trashed()) == ["one"]

    async def test_what_was_deleted_last_comes_back_first(
        self, backend: SessionPersistence
    ) -> None:
        for number in (1, 2, 3):
            await store(backend, make_events(number), log_id=str(number))
            await backend.delete(ONE)
        await store(backend, make_events(4), "other")
        await backend.delete(SessionId("other"))
        trashed = [stored.header and stored.header.log_id for stored in await backend.trashed()]
        assert trashed == ["log of other", "3", "2", "1"]
        await backend.restore(ONE)
        assert same(await read_all(backend), make_events(3))

    async def test_who_reads_a_session_that_is_deleted_goes_on(
        self, backend: SessionPersistence
    ) -> None:
        events = [make_events(1)[0], make_large(300_000, 1), make_events(1, start=2)[0]]
        await store(backend, events)
        async with await backend.read(ONE) as log:
            await backend.delete(ONE)
            await store(backend, make_events(9), log_id="new")
            assert same([event async for batch in log.batches() for event in batch], events)

    @pytest.mark.parametrize("odd", ODD_IDS, ids=ascii)
    async def test_a_session_with_an_odd_id_is_deleted_and_restored(
        self, backend: SessionPersistence, odd: str
    ) -> None:
        await store(backend, make_events(1), odd)
        await backend.delete(SessionId(odd))
        assert _ids(await backend.trashed()) == [odd]
        await backend.restore(SessionId(odd))
        assert len(await read_all(backend, odd)) == 1


def _ids(listed: Sequence[StoredSession]) -> list[str]:
    return sorted(stored.name for stored in listed)
