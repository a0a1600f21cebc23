"""What must be true of reading a stored session."""

# ruff: noqa: PLR2004 - the suite counts what it made

from __future__ import annotations

import asyncio

import pytest

from heald import Cancelled, CancelToken
from heald_persistence.contracts import SessionPersistence, last_before
from heald_persistence.testing.logs import (
    make_events,
    make_large,
    read_all,
    same,
    store,
    store_open,
)
from heald_session import LogOffset, SessionId, SessionNotFound


class ReaderContract:
    """A reader has the log as it was at one moment, and holds up nobody."""

    async def test_whether_logs_outlive_the_process_is_said_once_and_for_all(
        self, backend: SessionPersistence
    ) -> None:
        said = backend.outlives_process
        await store(backend, make_events(2))
        await backend.delete(SessionId("one"))
        assert isinstance(said, bool)
        assert backend.outlives_process is said

    async def test_the_last_event_before_an_offset_is_found_with_one_look(
        self, backend: SessionPersistence
    ) -> None:
        await store(backend, make_events(10))
        async with await backend.read(SessionId("one")) as log:
            found = [await last_before(log.batches, LogOffset(offset)) for offset in (0, 1, 7, 10)]
        assert [event.seq if event is not None else None for event in found] == [None, 0, 6, 9]

    async def test_an_unknown_session_is_not_found(self, backend: SessionPersistence) -> None:
        with pytest.raises(SessionNotFound):
            await backend.open(SessionId("nobody"))
        with pytest.raises(SessionNotFound):
            await backend.read(SessionId("nobody"))

    @pytest.mark.parametrize("types", [["acme/note"], ["acme/absent"]])
    async def test_reading_ahead_changes_nothing_but_when_it_is_read(
        self, backend: SessionPersistence, types: list[str]
    ) -> None:
        await store(backend, make_events(300))
        async with await backend.read(SessionId("one")) as log:
            plain = [e.seq async for batch in log.batches(types=types) for e in batch]
        async with await backend.read(SessionId("one"), ahead=types) as log:
            part = log.batches(LogOffset(5), LogOffset(9), types=types)
            assert [e.seq async for batch in part for e in batch] == [
                n for n in plain if 5 <= n < 9
            ]
            for _ in range(2):
                again = [e.seq async for batch in log.batches(types=types) for e in batch]
                assert again == plain
            assert [e.seq async for batch in log.batches() for e in batch] == [*range(300)]

    async def test_a_reader_keeps_the_moment_it_was_opened_at(
        self, backend: SessionPersistence
    ) -> None:
        writer = await store_open(backend, make_events(2))
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
            assert log.bytes_read > before
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

    async def test_a_range_and_types_are_combined(self, backend: SessionPersistence) -> None:
        events = [make_events(1, seq, f"acme/{'abc'[seq % 3]}")[0] for seq in range(30)]
        await store(backend, events)
        for start, stop in ((0, None), (0, 30), (7, 22), (29, 30), (30, 30), (12, 5), (3, 4)):
            for types in (None, ["acme/a"], {"acme/b", "acme/c"}, ["acme/nothing"], ()):
                found = await read_all(
                    backend,
                    start=LogOffset(start),
                    stop=None if stop is None else LogOffset(stop),
                    types=types,
                )
                wanted = [e for e in events[start:stop] if types is None or e.type in types]
                assert same(found, wanted), (start, stop, types)

    async def test_a_log_that_is_read_while_it_grows_is_always_a_whole_prefix(
        self, backend: SessionPersistence
    ) -> None:
        events = [
            make_large(270_000, n) if n % 10 == 5 else make_events(1, n)[0] for n in range(60)
        ]
        writer = await store_open(backend, events[:1])

        async def write() -> None:
            for start in range(1, 60, 2):
                writer.append(events[start : start + 2])
                await writer.flush()
            await writer.close()

        writing = asyncio.create_task(write())
        while not writing.done():
            least = writer.flushed
            found = await read_all(backend)
            assert len(found) >= least
            assert same(found, events[: len(found)])
        await writing
        assert same(await read_all(backend), events)

    async def test_two_readers_do_not_share_a_place(self, backend: SessionPersistence) -> None:
        await store(backend, make_events(10))
        async with (
            await backend.read(SessionId("one")) as first,
            await backend.read(SessionId("one")) as second,
        ):
            for log in (first, second, first):
                found = [event async for batch in log.batches() for event in batch]
                assert same(found, make_events(10))

    async def test_one_log_can_be_read_twice_at_once(self, backend: SessionPersistence) -> None:
        await store(backend, [make_large(300_000), *make_events(9, start=1)])
        async with await backend.read(SessionId("one")) as log:

            async def read() -> int:
                return len([event async for batch in log.batches() for event in batch])

            assert list(await asyncio.gather(read(), read(), read())) == [10, 10, 10]

    async def test_large_data_that_is_not_wanted_is_not_read(
        self, backend: SessionPersistence
    ) -> None:
        await store(backend, [make_large(1_000_000), *make_events(1, start=1)])
        async with await backend.read(SessionId("one")) as log:
            batches = log.batches(types={"acme/note"})
            assert [event.seq async for batch in batches for event in batch] == [1]
            assert log.bytes_read < 500_000

    async def test_a_read_that_is_left_early_lets_go(self, backend: SessionPersistence) -> None:
        await store(backend, make_events(5))
        async with await backend.read(SessionId("one")) as log:
            async for _ in log.batches():
                break
        writer = await backend.open(SessionId("one"))
        await writer.close()
