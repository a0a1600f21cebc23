"""A session's first bytes: all of them or none, whenever the process dies."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from heald_persistence.lease import Lease
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import make_events, read_all, store
from heald_session import SessionId


async def test_a_forked_child_is_absent_or_whole_at_whatever_step_its_maker_is_killed(
    backend: LocalPersistence, root: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    out, _ = start("fork-and-die", root.parent, "parent").communicate()
    steps = int(out.split()[-1])
    assert steps > 10

    stored = {session.name: session for session in await backend.list()}
    parent = await read_all(backend, "parent")
    present = [step for step in range(1, steps + 1) if f"child-{step}" in stored]
    assert present
    assert present == list(range(present[0], steps + 1))
    assert present[0] > 5
    for step in present:
        session = stored[f"child-{step}"]
        assert session.problem is None
        assert session.cut == len(parent)
        *prefix, descriptor = await read_all(backend, session.name)
        assert prefix == parent
        assert descriptor.type == "inbox/message"
        await (await backend.open(SessionId(session.name))).close()


async def test_what_a_maker_that_died_has_left_is_swept_and_what_is_held_is_not(
    backend: LocalPersistence, root: Path
) -> None:
    def left(name: str, *files: str) -> Path:
        place = root / name
        place.mkdir(parents=True)
        for file in files:
            (place / file).write_text("")
        return place

    dead = [left(".a.0123abcd", "lock", "session.json", "tail.jsonl"), left(".b.00000000")]
    (dead[0] / "blobs").mkdir()
    (dead[0] / "blobs" / "x").write_text("")
    spared = [left(".c.0123abcd", "notes.txt"), left(".cache"), left(".d.0123abcd", "lock")]
    held = Lease.take(spared[-1] / "lock", 1)
    await store(backend, make_events(1))
    held.close()
    assert [path.exists() for path in dead] == [False, False]
    assert [path.exists() for path in spared] == [True, True, True]
