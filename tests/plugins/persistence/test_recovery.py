"""What is made of a tail whose end is torn, and of one that is damaged."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from heald_persistence import Damage, SessionDamaged
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import make_events, read_all, same, store
from heald_session import SessionId

EVENTS = make_events(3)


@pytest.fixture
async def tail(backend: LocalPersistence, root: Path) -> Path:
    await store(backend, EVENTS)
    return root / "one" / "tail.jsonl"


def quarantined(tail: Path) -> bytes:
    return b"".join(path.read_bytes() for path in (tail.parent / "quarantine").glob("*"))


def forget(tail: Path) -> None:
    for path in (tail.parent / "quarantine").glob("*"):
        path.unlink()


async def test_a_tail_cut_at_any_byte_after_its_header_keeps_every_whole_event(
    backend: LocalPersistence, tail: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tail.read_bytes()
    first = data.index(b"\n") + 1
    for length in range(first, len(data)):
        tail.write_bytes(data[:length])
        whole = data.rindex(b"\n", 0, length) + 1
        count = data.count(b"\n", first, length)
        caplog.clear()

        assert same(await read_all(backend), EVENTS[:count])
        assert tail.read_bytes() == data[:length]

        writer = await backend.open(SessionId("one"))
        assert writer.flushed == count
        assert tail.read_bytes() == data[:whole]
        assert quarantined(tail) == data[whole:length]
        notices = [r for r in caplog.records if r.levelno == logging.WARNING]
        assert len(notices) == (length > whole)

        writer.append(EVENTS[count:])
        await writer.close()
        assert tail.read_bytes() == data
        forget(tail)


async def test_a_tail_cut_inside_its_header_is_damage_and_is_left_as_it_is(
    backend: LocalPersistence, tail: Path
) -> None:
    data = tail.read_bytes()
    for length in range(data.index(b"\n") + 1):
        tail.write_bytes(data[:length])
        with pytest.raises(SessionDamaged, match="first line"):
            await backend.open(SessionId("one"))
        with pytest.raises(SessionDamaged, match="first line"):
            await read_all(backend)
        told: list[Damage] = []
        assert await read_all(backend, on_damage=told.append) == []
        assert [(damage.kind, damage.first, damage.count) for damage in told] == [
            ("tail_header", 0, None)
        ]
        assert tail.read_bytes() == data[:length]
    assert not (tail.parent / "quarantine").exists()


@pytest.mark.parametrize("before", [b"", b'{"seq":3,"type":"acme/no'])
async def test_zeros_after_the_end_are_a_torn_write(
    backend: LocalPersistence, tail: Path, before: bytes
) -> None:
    data = tail.read_bytes()
    tail.write_bytes(data + before + bytes(4096))
    assert same(await read_all(backend), EVENTS)
    writer = await backend.open(SessionId("one"))
    assert writer.flushed == 3
    await writer.close()
    assert tail.read_bytes() == data
    assert quarantined(tail) == before + bytes(4096)


async def test_one_flipped_bit_before_the_last_line_is_damage_and_never_a_torn_write(
    backend: LocalPersistence, tail: Path
) -> None:
    data = tail.read_bytes()
    last = data.rindex(b"\n", 0, -1) + 1
    for place in range(last):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        tail.write_bytes(flipped)
        with pytest.raises(SessionDamaged):
            await backend.open(SessionId("one"))
        told: list[Damage] = []
        found = await read_all(backend, on_damage=told.append)
        assert same(found, [event for event in EVENTS if event.seq in {e.seq for e in found}])
        counts = [3 - len(found) if d.count is None else d.count for d in told]
        assert len(found) + sum(counts) == 3
        assert [
            damage for damage in await backend.verify(SessionId("one")) if damage.count != 0
        ] == told
        assert await backend.verify(SessionId("one"))
        if told:
            with pytest.raises(SessionDamaged):
                await read_all(backend)
        assert tail.read_bytes() == flipped
    assert not (tail.parent / "quarantine").exists()


async def test_a_wrong_last_line_is_kept_in_quarantine(
    backend: LocalPersistence, tail: Path
) -> None:
    data = tail.read_bytes()
    last = data.rindex(b"\n", 0, -1) + 1
    tail.write_bytes(data[:-4] + b"?" + data[-3:])
    assert same(await read_all(backend), EVENTS[:2])
    await (await backend.open(SessionId("one"))).close()
    assert tail.read_bytes() == data[:last]
    assert quarantined(tail) == data[last:-4] + b"?" + data[-3:]


async def test_a_missing_tail_is_damage(backend: LocalPersistence, tail: Path) -> None:
    tail.unlink()
    for use in (backend.open(SessionId("one")), read_all(backend)):
        with pytest.raises(SessionDamaged, match=r"tail\.jsonl"):
            await use


async def test_a_line_missing_from_the_middle_is_damage(
    backend: LocalPersistence, tail: Path
) -> None:
    lines = tail.read_bytes().split(b"\n")
    tail.write_bytes(b"\n".join([*lines[:2], *lines[3:]]))
    with pytest.raises(SessionDamaged, match=r"event 1: it has seq 2"):
        await backend.open(SessionId("one"))
    with pytest.raises(SessionDamaged, match=r"event 1: .* missing before it"):
        await read_all(backend)


async def test_lines_longer_than_a_block_are_read(backend: LocalPersistence) -> None:
    events = make_events(1, start=400_000)
    events = [type(e)(e.seq, e.type, e.time, e.encoded) for e in events]
    big = [make_events(1)[0], type(events[0])(make_events(2)[1].seq, "big", 1, events[0].encoded)]
    await store(backend, [*big, *make_events(1, start=2)])
    assert same(await read_all(backend), [*big, *make_events(1, start=2)])
    assert (await backend.open(SessionId("one"))).flushed == 3
