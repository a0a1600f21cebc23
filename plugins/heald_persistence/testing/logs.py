"""Logs to store, and what is read back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from heald_persistence.contracts import LogWriter, SessionPersistence
from heald_session import FORMAT_VERSION, Event, Header, LogOffset, Seq, SessionId

ODD_IDS = ("a/b", "..", ".", "../../up", "~", ".hidden", "x" * 300, "\x00\n", "naïve", "🧵", " ")
"""Ids that must name a session and nothing else."""


def make_header(id: str = "one", **facts: Any) -> Header:  # noqa: A002
    """Make a header as a session store would."""
    usual = {"version": FORMAT_VERSION, "log_id": f"log of {id}", "created_at": 1_700_000_000_000}
    return Header(id=SessionId(id), **{**usual, **facts})


def make_events(count: int, start: int = 0, type: str = "acme/note") -> list[Event]:  # noqa: A002
    """Make events that continue a log at `start`."""
    return [
        _event(seq, type, {"n": seq, "text": "é\n" * seq}) for seq in range(start, start + count)
    ]


def make_large(size: int, seq: int = 0, fill: str = "x") -> Event:
    """Make an event with `size` bytes of data."""
    return _event(seq, "acme/large", fill * (size - 2))


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
    await (await store_open(backend, events, id, **facts)).close()


async def store_open(
    backend: SessionPersistence,
    events: Sequence[Event],
    id: str = "one",  # noqa: A002
    **facts: Any,
) -> LogWriter:
    """Store a session and keep its writer."""
    writer = await backend.create(make_header(id, **facts), LogOffset(0))
    writer.append(events)
    await writer.flush()
    return writer


def same(found: Sequence[Event], wanted: Sequence[Event]) -> bool:
    """Compare events with the bytes of their data."""
    return [_whole(event) for event in found] == [_whole(event) for event in wanted]


def _whole(event: Event) -> tuple[bytes, bytes]:
    return msgspec.json.encode(event), bytes(event.encoded)


def _event(seq: int, type: str, data: Any) -> Event:  # noqa: A002
    encoded = msgspec.Raw(msgspec.json.encode(data))
    return Event(Seq(seq), type, 1_700_000_000_000 + seq, encoded)


def blocks_in(log: bytes | bytearray) -> list[tuple[int, int, int, dict[str, Any]]]:
    """Return where each block, its frame, and the next block begin, and its zone map.

    They are read as the format is described, by none of the code that is tested.
    """
    found, place = [], 0
    while place < len(log):
        frame = place + 8 + int.from_bytes(log[place + 4 : place + 8], "little")
        zone = json.loads(log[place + 8 : frame])
        found.append((place, frame, frame + zone["stored"], zone))
        place = frame + zone["stored"]
    return found
