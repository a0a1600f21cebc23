"""What compaction asks and what came of it are in the log, and nowhere else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from heald import Host, Row
from heald.testing import HostFactory
from heald_agent import agents
from heald_agent.requests import request_of
from heald_compaction import CompactionStarted
from heald_compaction.summary import asked
from heald_models_scripted import Reply
from heald_persistence import SessionNotSaved
from heald_query import session_query
from heald_session import (
    CutInvalid,
    LogOffset,
    Session,
    SessionId,
    after,
    session_store,
)

OpenDesk = Callable[..., AbstractAsyncContextManager[Any]]
LONG = "a long story " * 20
ID = SessionId("told")


async def tell(at: Any) -> Session:
    """Have a session compacted twice, with turns before, between and after."""
    agent = await at.agent(id=ID)
    await at.say(agent, LONG, "call /nothing", LONG)
    await at.compact(agent, "the names")
    await at.say(agent, "go on", LONG)
    at.summary = Reply(text="They counted on.")
    await at.compact(agent)
    await at.say(agent, "and on")
    session: Session = agent.session
    return session


async def test_every_request_can_be_made_again_from_the_log_byte_for_byte(
    desk: OpenDesk,
) -> None:
    async with desk(keep=120) as at:
        session = await tell(at)
        sent = [msgspec.json.encode(request) for request in at.sent]
        opened = [
            event for event in session.hot() if event.type in ("step/start", "compaction/started")
        ]
        assert len(opened) == len(sent)
        # In the steps of turns the agent's own tests make requests again.
        compactions = [(e, r) for e, r in zip(opened, sent, strict=True) if e.type != "step/start"]
        assert len(compactions) == 2
        store = at.host.scope.require(session_store)
        for event, request in compactions:
            fork = await store.fork(ID, cut=after(event.seq))
            started = event.data_as(CompactionStarted)
            shown = fork.surface()
            seqs = [place.seq for place in shown]
            replaced = shown[seqs.index(started.first) : seqs.index(started.last) + 1]
            again = request_of(fork, started.model, asked(replaced, started))
            assert msgspec.json.encode(again) == request


async def test_a_resumed_session_and_one_without_the_plugin_see_the_same(
    desk: OpenDesk, heald_host: HostFactory, heald_home: Path
) -> None:
    async with desk(keep=120) as at:
        session = await tell(at)
        seen, surface = session.history(), session.surface()
    async with desk(keep=120) as at:
        agent = await at.host.scope.require(agents).resume(ID)
        assert agent.session.history() == seen
        assert agent.session.surface() == surface
    async with heald_host(
        rows=[Row("session", "session"), Row("persistence", "persistence")], home=heald_home
    ) as host:
        cold = await host.scope.require(session_store).resume(ID)
        assert cold.history() == seen
        await host.scope.require(session_store).dispose(cold)


async def test_a_fork_sees_what_its_source_saw_at_the_cut(desk: OpenDesk) -> None:
    async with desk() as at:
        agent = await at.agent(id=ID)
        await at.say(agent, LONG)
        said = agent.session.history()
        begun = agent.session.end
        await at.compact(agent)
        summed_up = agent.session.history()
        store = at.host.scope.require(session_store)
        seen = {}
        for cut in range(agent.session.end + 1):
            try:
                fork = await store.fork(ID, cut=LogOffset(cut), id=SessionId(f"at-{cut}"))
            except CutInvalid:
                continue
            seen[cut] = fork.history()
            await store.dispose(fork)
        assert [event.type for event in agent.session.hot(begun)] == [
            "compaction/started",
            "history/summary",
            "command/ran",
        ]
        assert [seen[cut] for cut in range(begun, begun + 4)] == [said, said, summed_up, summed_up]


async def test_nothing_is_asked_before_what_it_is_made_of_is_durable(
    desk: OpenDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk() as at:
        agent = await at.agent(id=ID)
        await at.say(agent, LONG)
        before, sent = agent.session.history(), len(at.sent)
        flushed = type(agent.session).flush

        async def fail(session: Session) -> None:
            monkeypatch.setattr(type(agent.session), "flush", flushed)
            raise SessionNotSaved(session.id, "the disk is full")

        monkeypatch.setattr(type(agent.session), "flush", fail)
        with pytest.raises(SessionNotSaved):
            await at.compact(agent)
        assert len(at.sent) == sent
        assert agent.session.history() == before


async def test_killed_while_it_asks_it_changes_nothing(
    desk: OpenDesk, heald_home: Path, tmp_path: Path
) -> None:
    async with desk() as at:
        agent = await at.agent(id=ID)
        await at.say(agent, LONG)
        before = agent.session.history()

        def kill() -> None:
            logs_alone = shutil.ignore_patterns("cache")  # what is derived may be being written
            shutil.copytree(heald_home, tmp_path / "killed", ignore=logs_alone)

        at.waiting.set = kill
        await at.compact(agent)
    async with desk(home=tmp_path / "killed") as at:
        agent = await at.host.scope.require(agents).resume(ID)
        assert agent.session.history() == before
        assert agent.session.hot()[-1].type == "compaction/started"
        await at.say(agent, "go on")
        await at.compact(agent)
        assert len(agent.session.history()) == 1


async def test_people_read_everything_in_a_cold_log(desk: OpenDesk) -> None:
    async with desk() as at:
        session = await tell(at)
        types = [event.type for event in session.hot()]
        await at.host.scope.require(agents).get(ID).dispose()
        host: Host = at.host
        async with host.scope.require(session_query).observe_session(ID, ["title"]) as seen:
            stored = [event async for event in seen.events()]
        assert [event.type for event in stored] == types
        assert sum(event.data.get("text") == LONG for event in stored) >= 3
        assert seen.projections.values["title"]["text"].startswith("a long story")
