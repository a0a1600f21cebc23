"""What others do with the same events: stores that people would otherwise use, if installed."""

from __future__ import annotations

import importlib
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
import msgspec
from benchmarks.report import Measurement

Data = Sequence[dict[str, str]]


@attrs.frozen
class Store:
    """A store: how an event is appended, how all of them are read, and how it is let go."""

    append: Callable[[dict[str, str]], Awaitable[object]]
    read: Callable[[], Awaitable[Sequence[object]]]
    close: Callable[[], object] = lambda: None


async def measured(name: str, store: Store, data: Data, folder: Path) -> list[Measurement]:
    """Append events one by one, read them all, and look at what is on disk."""
    began = time.perf_counter()
    for one in data:
        await store.append(one)
    appending = time.perf_counter() - began
    began = time.perf_counter()
    found = await store.read()
    reading = time.perf_counter() - began
    assert len(found) == len(data)  # noqa: S101
    store.close()  # what it wrote ahead goes where it belongs
    size = size_of(folder)
    return [
        Measurement(f"{name}: appends, each as it syncs", len(data) / appending, "events/s"),
        Measurement(f"{name}: events read", len(data) / reading, "events/s"),
        Measurement(f"{name}: on disk, an event", size / len(data), "bytes"),
    ]


def size_of(folder: Path) -> int:
    """Return how many bytes the files of a folder have."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def stores(folder: Path) -> Iterator[tuple[str, Store, Path]]:
    """Yield the peers that are installed, each with a folder of its own."""
    for name, (module, make) in PEERS.items():
        if find_spec(module) is not None:
            place = folder / name
            place.mkdir()
            yield name, make(place), place


def absent() -> Iterator[Measurement]:
    """Name the peers that are not here to be measured."""
    for name, (module, _) in PEERS.items():
        if find_spec(module) is None:
            yield Measurement(f"{name}: is not installed and was not measured", 0, "count")


def agents_session(folder: Path) -> Store:
    """Make a session of the OpenAI Agents SDK on SQLite."""
    agents: Any = importlib.import_module("agents")
    session = agents.SQLiteSession("one", folder / "session.db")

    async def append(data: dict[str, str]) -> None:
        await session.add_items([{"role": "user", "content": data["text"]}])

    return Store(append, session.get_items, session.close)


def event_recorder(folder: Path) -> Store:
    """Make a recorder of the library `eventsourcing` on SQLite."""
    sqlite: Any = importlib.import_module("eventsourcing.sqlite")
    persistence: Any = importlib.import_module("eventsourcing.persistence")
    datastore = sqlite.SQLiteDatastore(str(folder / "events.db"))
    recorder = sqlite.SQLiteApplicationRecorder(datastore)
    recorder.create_table()
    session, versions = uuid4(), iter(range(1, 10**9))

    async def append(data: dict[str, str]) -> None:
        state = msgspec.json.encode(data)
        stored = persistence.StoredEvent(session, next(versions), "inbox/message", state)
        recorder.insert_events([stored])

    async def read() -> Sequence[object]:
        return [msgspec.json.decode(event.state) for event in recorder.select_events(session)]

    return Store(append, read, datastore.close)


PEERS: dict[str, tuple[str, Callable[[Path], Store]]] = {
    "openai-agents": ("agents", agents_session),
    "eventsourcing": ("eventsourcing", event_recorder),
}
