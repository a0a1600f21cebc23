"""What is left when a process is killed at any moment."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from heald_persistence.local import LocalPersistence
from heald_persistence.testing import read_all
from heald_session import SessionId

NAMES = ("a", "b", "c")


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.crash) for n in range(6, 200))]
)
async def test_every_event_whose_flush_returned_is_there_in_order_once(
    backend: LocalPersistence,
    root: Path,
    start: Callable[..., subprocess.Popen[str]],
    seed: int,
) -> None:
    process = start("append", root.parent, ",".join(NAMES))
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(random.Random(seed).randint(1, 60))]
    process.kill()
    said += process.communicate()[0].splitlines(keepends=True)

    acknowledged: dict[str, int] = dict.fromkeys(NAMES, 0)
    for line in said:
        if line.endswith("\n"):
            name, length = line.split()
            acknowledged[name] = int(length)
    assert sum(acknowledged.values())
    for stored in await backend.list():
        assert stored.problem is None
        events = await read_all(backend, stored.name)
        assert [event.seq for event in events] == list(range(len(events)))
        assert len(events) >= acknowledged.pop(stored.name)
        turns = [event.data["turn"] for event in events if event.type == "turn/start"]
        assert turns == list(range(1, len(turns) + 1))
        await (await backend.open(SessionId(stored.name))).close()
    assert not any(acknowledged.values())
