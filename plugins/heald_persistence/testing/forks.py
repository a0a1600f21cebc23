"""What must be true of sessions that begin with the events of another."""

# ruff: noqa: PLR2004 - the suite counts what it made

from __future__ import annotations

import pytest

from heald_persistence.contracts import SessionPersistence
from heald_persistence.testing.logs import (
    make_events,
    make_header,
    make_large,
    read_all,
    same,
    store,
)
from heald_session import LogOffset, SessionId, SessionIdTaken, SessionNotFound


class ForkContract:
    """The prefix of the one, then the other's own."""

    @pytest.mark.parametrize("cut", [0, 1, 3])
    async def test_a_fork_begins_with_its_sources_events_and_goes_on_from_the_cut(
        self, backend: SessionPersistence, cut: int
    ) -> None:
        events = make_events(5)
        source = await backend.create(make_header(), LogOffset(0))
        source.append(events)
        await source.flush()
        header = make_header("two", is_seeded=cut > 0, parent_session=SessionId("one"))
        writer = await backend.fork(SessionId("one"), LogOffset(cut), header)
        assert writer.flushed == 0
        with pytest.raises(SessionNotFound):
            await backend.read(SessionId("two"))
        own = make_events(2, start=cut, type="acme/own")
        writer.append(own)
        await writer.flush()
        assert writer.flushed == cut + 2
        await source.close()
        await backend.delete(SessionId("one"))
        async with await backend.read(SessionId("two")) as log:
            assert (log.header, log.cut, log.end) == (header, cut, cut + 2)
        assert same(await read_all(backend, "two"), events[:cut] + own)
        await writer.close()

    async def test_a_fork_that_adds_nothing_is_stored_by_its_first_flush(
        self, backend: SessionPersistence
    ) -> None:
        await store(backend, make_events(3))
        header = make_header("two", is_seeded=True)
        writer = await backend.fork(SessionId("one"), LogOffset(2), header)
        await writer.flush()
        assert writer.flushed == 2
        await writer.close()
        assert same(await read_all(backend, "two"), make_events(2))

    async def test_a_fork_that_is_refused_or_given_up_leaves_its_id_free(
        self, backend: SessionPersistence
    ) -> None:
        await store(backend, make_events(3))
        header = make_header("two", is_seeded=True)
        with pytest.raises(SessionNotFound):
            await backend.fork(SessionId("nobody"), LogOffset(1), header)
        with pytest.raises(SessionIdTaken):
            await backend.fork(SessionId("one"), LogOffset(1), make_header(is_seeded=True))
        writer = await backend.fork(SessionId("one"), LogOffset(3), header)
        await writer.discard()
        assert [stored.name for stored in await backend.list()] == ["one"]
        await store(backend, make_events(1), "two")

    async def test_a_fork_that_inherits_nothing_needs_no_source(
        self, backend: SessionPersistence
    ) -> None:
        writer = await backend.fork(SessionId("nobody"), LogOffset(0), make_header("two"))
        await writer.flush()
        assert list(await backend.list()) == []
        writer.append(make_events(1))
        await writer.close()
        assert same(await read_all(backend, "two"), make_events(1))

    async def test_a_fork_beyond_the_end_of_its_source_is_refused_and_not_clipped(
        self, backend: SessionPersistence
    ) -> None:
        await store(backend, make_events(3))
        header = make_header("two", is_seeded=True)
        with pytest.raises(ValueError, match="3 events"):
            await backend.fork(SessionId("one"), LogOffset(4), header)
        await store(backend, make_events(1), "two")

    async def test_a_prefix_that_is_appended_is_inherited_as_well(
        self, backend: SessionPersistence
    ) -> None:
        await store(backend, make_events(4))
        header = make_header("two", is_seeded=True, parent_session=SessionId("one"))
        writer = await backend.create(header, LogOffset(3))
        writer.append(await read_all(backend, stop=LogOffset(3)))
        writer.append(make_events(1, start=3, type="acme/own"))
        await writer.close()
        async with await backend.read(SessionId("two")) as log:
            assert (log.cut, log.end) == (3, 4)
        assert same((await read_all(backend, "two"))[:3], make_events(3))

    async def test_large_data_is_inherited_and_outlives_its_source(
        self, backend: SessionPersistence
    ) -> None:
        events = [*make_events(1), make_large(600_000, 1), make_large(300_000, 2, "y")]
        await store(backend, events)
        header = make_header("two", is_seeded=True, parent_session=SessionId("one"))
        writer = await backend.fork(SessionId("one"), LogOffset(3), header)
        await writer.close()
        await backend.delete(SessionId("one"))
        assert same(await read_all(backend, "two"), events)

    async def test_a_fork_of_a_fork_is_whole(self, backend: SessionPersistence) -> None:
        await store(backend, make_events(2))
        for number, (source, name) in enumerate((("one", "two"), ("two", "three"))):
            header = make_header(name, is_seeded=True, parent_session=SessionId(source))
            cut = LogOffset(2 + number)
            writer = await backend.fork(SessionId(source), cut, header)
            writer.append(make_events(1, start=cut))
            await writer.close()
        async with await backend.read(SessionId("three")) as log:
            assert (log.cut, log.end) == (3, 4)
        assert same(await read_all(backend, "three"), make_events(4))
