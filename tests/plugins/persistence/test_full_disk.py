"""A disk that is really full: what was acknowledged is there, the rest waits for room."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from heald_persistence import SessionNotSaved
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import make_header, read_all, same
from heald_session import Event, LogOffset, Seq, SessionId

ONE = SessionId("one")
SIZE = 2 * 1024 * 1024


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root on Linux may mount a small file system")
    options = ["-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs"]
    mounted = subprocess.run(["mount", *options, place], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def event(seq: int) -> Event:
    return Event(
        Seq(seq), "acme/noise", seq, msgspec.Raw(b'"%b"' % os.urandom(10_000).hex().encode())
    )


async def test_a_full_disk_costs_nothing_that_was_acknowledged_and_nothing_that_waits(
    full_disk: Path,
) -> None:
    backend = LocalPersistence(full_disk / "sessions", 10**7, lambda: 1, logging.getLogger("acme"))
    writer = await backend.create(make_header(), LogOffset(0))
    events = [event(seq) for seq in range(300)]
    acknowledged = 0
    for number, one in enumerate(events):
        writer.append([one])
        try:
            await writer.flush()
        except SessionNotSaved:
            break
        acknowledged = number + 1
    assert 0 < acknowledged < 300
    assert writer.not_saved is not None
    found = await read_all(backend)
    assert same(found, events[: len(found)])
    assert len(found) >= acknowledged
    taken = acknowledged + 1
    writer.append(events[taken : taken + 20])
    with pytest.raises(SessionNotSaved):
        await writer.flush()

    room = ["mount", "-o", f"remount,size={SIZE * 20}", str(full_disk)]
    subprocess.run(room, check=True)  # noqa: ASYNC221
    await writer.flush()
    assert writer.flushed == taken + 20
    assert not writer.not_saved
    writer.append(events[taken + 20 :])
    await writer.close()
    assert same(await read_all(backend), events)
    assert list(await backend.verify(ONE)) == []
