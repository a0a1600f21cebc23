"""A process of its own that writes sessions, driven by its arguments and its standard input.

`hold HOME ID`            makes or opens a session, says `held`, lets go at the end of input
`hold-and-fork HOME ID`   the same with a forked child that lives on; says the child's pid as well
`append HOME IDS`         appends to sessions for ever; says `ID LENGTH` whenever a flush returned
`fork-and-die HOME ID`    makes a session, then forks it in processes that are killed at their
                          first, second, ... call of the disk; says how many calls there are
`seal-and-die HOME ID`    seals sessions ID1, ID2, ... in processes that are killed at their
                          first, second, ... call of the disk; says `ID LENGTH` whenever a
                          flush returned, and last how many calls there are
`seal HOME ID COUNT`      makes a session of small frames in so many small batches
`contend HOME ID ROUNDS`  opens, appends and closes; says `LENGTH` for what it made durable
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from heald import Host, Row, open_host
from heald_persistence import SessionBusy, SessionPersistence, disk, session_persistence
from heald_persistence.local import LocalPersistence
from heald_persistence.testing import make_events, make_header
from heald_session import (
    APPEND,
    Event,
    LogOffset,
    NewEvent,
    Seq,
    SessionId,
    SessionIdTaken,
    SessionNotFound,
    session_store,
)

ROWS = (Row("session", "session"), Row("persistence", "persistence", {"seal_bytes": 4000}))


CALLS = ("create", "append_to", "write", "sync", "rename", "link", "sync_directory", "truncate")


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def live_on() -> NoReturn:
    time.sleep(60)
    os._exit(0)


async def hold(host: Host, name: str, *, fork: bool = False) -> None:
    backend = host.scope.require(session_persistence)
    writer = await backend.open(SessionId(name))
    child = os.fork() if fork else None
    if child == 0:
        live_on()
    say("held", *([] if child is None else [child]))
    await asyncio.to_thread(sys.stdin.read)
    await writer.close()


async def append(host: Host, names: str) -> None:
    store = host.scope.require(session_store)
    sessions = [await store.create(cwd=None, id=SessionId(name)) for name in names.split(",")]

    async def write(name: str, number: int) -> None:
        for turn in range(1, 1_000_000):
            sessions[number].append("turn/start", {"turn": turn})
            if random.random() < 0.5:
                sessions[number].append("turn/end", {"turn": turn, "outcome": "completed"})
                await sessions[number].flush()
                say(name, sessions[number].flushed)

    await asyncio.gather(*(write(name, n) for n, name in enumerate(names.split(","))))


async def contend(host: Host, name: str, rounds: int) -> None:
    backend = host.scope.require(session_persistence)
    won = 0
    while won < rounds:
        try:
            await once(backend, name)
            won += 1
        except (SessionBusy, SessionIdTaken):
            await asyncio.sleep(0)


async def once(backend: SessionPersistence, name: str) -> None:
    try:
        writer = await backend.open(SessionId(name))
    except SessionNotFound:
        writer = await backend.create(make_header(name), LogOffset(0))
    try:
        start = writer.flushed
        writer.append([make_event(seq) for seq in range(start, start + random.randint(1, 3))])
        await writer.flush()
        say(writer.flushed)
    finally:
        await writer.discard()


async def make_parent(home: str, name: str) -> None:
    async with open_host(home=Path(home), rows=ROWS, env={}, strict=True) as host:
        session = await host.scope.require(session_store).create(cwd="/", id=SessionId(name))
        for turn in (1, 2):
            session.append("turn/start", {"turn": turn})
            message = {"id": f"m{turn}", "text": str(turn) * 300_000}
            session.append("user/message", message, surface=APPEND)
            session.append("turn/end", {"turn": turn, "outcome": "completed"})


async def fork_session(home: str, name: str, step: int) -> None:
    async with open_host(home=Path(home), rows=ROWS, env={}, strict=True) as host:
        die_at(step)
        descriptor = NewEvent("inbox/message", {"id": "m", "text": "about the child"})
        await host.scope.require(session_store).fork(
            SessionId(name), id=SessionId(f"child-{step}"), first=[descriptor]
        )
        os._exit(0)


def die_at(step: int) -> None:
    calls = itertools.count(1)

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if next(calls) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args)

        return call

    for function in CALLS:
        setattr(disk, function, wrap(getattr(disk, function)))


def fork_and_die(home: str, name: str) -> None:
    asyncio.run(make_parent(home, name))
    for step in itertools.count(1):
        child = os.fork()
        if child == 0:
            asyncio.run(fork_session(home, name, step))
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            say(step)
            return


def backend_of(home: str) -> LocalPersistence:
    return LocalPersistence(
        Path(home) / "sessions", 10**6, lambda: 1, logging.getLogger(), seal_bytes=4000
    )


async def seal(home: str, name: str, batches: int, size: int, step: int) -> None:
    writer = await backend_of(home).create(make_header(name), LogOffset(0))
    writer.append(make_events(3))
    await writer.flush()
    die_at(step)
    for _ in range(batches):
        writer.append(make_events(size, start=writer.flushed))
        await writer.flush()
        say(name, writer.flushed)
    await writer.close()


async def seal_small(home: str, name: str, batches: int) -> None:
    writer = await backend_of(home).create(make_header(name), LogOffset(0))
    for _ in range(batches):
        start = writer.flushed
        writer.append([make_event(seq) for seq in range(start, start + 5)])
        await writer.flush()
    await writer.close()


def make_event(seq: int) -> Event:
    return Event(Seq(seq), "acme/note", seq, msgspec.Raw(b'{"n":%d}' % seq))


def seal_and_die(home: str, name: str) -> None:
    for step in itertools.count(1):
        child = os.fork()
        if child == 0:
            asyncio.run(seal(home, f"{name}{step}", 4, 20, step))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            say(step)
            return


async def main(task: str, home: str, name: str, *more: str) -> None:
    async with open_host(home=Path(home), rows=ROWS, env={}, strict=True) as host:
        if task == "append":
            await append(host, name)
        elif task == "contend":
            await contend(host, name, int(more[0]))
        else:
            await hold(host, name, fork=task == "hold-and-fork")


if __name__ == "__main__":
    if sys.argv[1] == "fork-and-die":
        fork_and_die(*sys.argv[2:])
    elif sys.argv[1] == "seal-and-die":
        seal_and_die(*sys.argv[2:])
    elif sys.argv[1] == "seal":
        asyncio.run(seal_small(sys.argv[2], sys.argv[3], int(sys.argv[4])))
    else:
        asyncio.run(main(*sys.argv[1:]))
