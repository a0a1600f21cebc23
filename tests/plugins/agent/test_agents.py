from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import pytest

from heald import CompositionError, Host, Row, ServiceAbsent
from heald_agent import Agent, AgentExists, CwdInvalid, ModelUnknown, StateKey, agents
from heald_models_scripted import Conversation, Reply, Script
from heald_preset import PresetConflict, PresetNotFound
from heald_session import InboxMessage, SessionClosed, SessionId, session_store

HostWith = Callable[..., AbstractAsyncContextManager[Host]]
PRESETS = (Row("projection", "projection"), Row("preset", "preset", {"default": "one"}))
A, B = SessionId("a"), SessionId("b")


@pytest.fixture(autouse=True)
def two_presets(heald_home: Path) -> None:
    for name in ("one", "two"):
        folder = heald_home / "presets" / name
        folder.mkdir(parents=True)
        (folder / "preset.toml").write_text('[[rows]]\nid = "more"\nplugin = "brings"\n')


def told(agent: Agent) -> list[str]:
    return [event.data["text"] for event in agent.session.hot() if event.type == "user/message"]


async def test_a_place_nobody_can_work_in_is_refused(host_with: HostWith, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    shut = tmp_path / "shut"
    shut.mkdir(mode=0)
    odd = tmp_path / "\udcff"
    odd.mkdir()
    async with host_with() as host:
        create = host.scope.require(agents).create
        with pytest.raises(CwdInvalid, match="does not exist"):
            await create(cwd=tmp_path / "nowhere")
        with pytest.raises(CwdInvalid, match="not a directory"):
            await create(cwd=file)
        with pytest.raises(CwdInvalid, match="not UTF-8"):
            await create(cwd=odd)
        if not os.access(shut, os.R_OK):  # the one who may do anything may read it too
            with pytest.raises(CwdInvalid, match="cannot be read"):
                await create(cwd=shut)
        assert host.scope.require(session_store).live() == ()
    shut.chmod(0o700)


async def test_without_presets_an_agent_runs_on_the_hosts_rows(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with() as host:
        registry = host.scope.require(agents)
        agent = await registry.create(cwd=tmp_path, id=A)
        assert agent.session.header.agent_preset is None
        assert agent.session.header.cwd == str(tmp_path)
        assert agent.session.scope.composition is host.composition
        assert registry.get(A) is agent
        with pytest.raises(ServiceAbsent, match="preset"):
            await registry.create(cwd=tmp_path, preset="one")


async def test_an_agent_runs_on_its_preset_until_it_is_disposed_of(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(extra=PRESETS) as host:
        registry = host.scope.require(agents)
        first = await registry.create(cwd=tmp_path)
        second = await registry.create(cwd=tmp_path, preset="two")
        assert [a.session.header.agent_preset for a in (first, second)] == ["one", "two"]
        composition = second.session.scope.composition
        assert composition.parent is host.composition
        assert composition.mounted
        await second.dispose()
        assert not composition.mounted
        assert first.session.scope.composition.mounted


@pytest.mark.parametrize("preset", ["one", "three"])
async def test_an_agent_that_cannot_be_made_leaves_no_session_and_no_seat(
    host_with: HostWith, tmp_path: Path, preset: str
) -> None:
    async with host_with(extra=PRESETS, storage=True) as host:
        constructed = host.constructed
        with pytest.raises((ModelUnknown, PresetNotFound)):
            await host.scope.require(agents).create(
                cwd=tmp_path, preset=preset, model="nobody:x", id=A
            )
        assert host.scope.require(session_store).live() == ()
        assert host.constructed - constructed == (1 if preset == "one" else 0)
        again = await host.scope.require(agents).create(cwd=tmp_path, preset="one", id=A)
        assert again.session.scope.composition.mounted
        assert host.constructed - constructed == (2 if preset == "one" else 1)


async def test_resuming_a_live_session_is_its_agent_unless_another_preset_is_asked_for(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(extra=PRESETS) as host:
        registry = host.scope.require(agents)
        agent = await registry.create(cwd=tmp_path, id=A)
        assert await registry.resume(A) is agent
        assert await registry.resume(A, preset="one", model="scripted:echo") is agent
        assert agent.model == "scripted:echo"
        with pytest.raises(PresetConflict):
            await registry.resume(A, preset="two")
        assert registry.get(A) is agent


async def test_a_stored_session_goes_on_with_its_preset_and_model(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(extra=PRESETS, storage=True) as host:
        agent = await host.scope.require(agents).create(
            cwd=tmp_path, preset="two", model="scripted:echo", id=A
        )
        await agent.send("one")
        await agent.settled()
    async with host_with(extra=PRESETS, storage=True) as host:
        registry = host.scope.require(agents)
        with pytest.raises(PresetConflict):
            await registry.resume(A, preset="one")
        assert host.scope.require(session_store).live() == ()
        agent, same = await asyncio.gather(registry.resume(A), registry.resume(A))
        assert agent is same
        assert agent.session.scope.composition.name == "preset two"
        assert agent.model == "scripted:echo"
        before = await agent.settled()
        assert (before.turn, before.text) == (1, "one")
        await agent.send("two")
        assert (await agent.settled()).turn == 2
        assert told(agent) == ["one", "two"]


async def test_a_stored_session_whose_directory_is_gone_says_so(
    host_with: HostWith, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    async with host_with(storage=True) as host:
        agent = await host.scope.require(agents).create(cwd=place, model="scripted:echo", id=A)
        await agent.send("one")
        await agent.settled()
    place.rmdir()
    async with host_with(storage=True) as host:
        with pytest.raises(CwdInvalid, match="place"):
            await host.scope.require(agents).resume(A)
        assert host.scope.require(session_store).live() == ()


async def test_accepted_messages_are_delivered_after_a_restart_and_only_once(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(storage=True) as host:
        session = await host.scope.require(session_store).create(cwd=str(tmp_path), id=A)
        session.append("inbox/message", InboxMessage("m1", "waiting"))
        session.append("inbox/message", InboxMessage("m2", "steering", "steer"))
        await session.flush()
    async with host_with(storage=True) as host:
        agent = await host.scope.require(agents).resume(A)
        assert (await agent.settled()).turn == 0  # nothing says on which model
        assert told(agent) == []
        await agent.dispose()
    for _ in range(2):
        async with host_with(storage=True) as host:
            agent = await host.scope.require(agents).resume(A, model="scripted:echo")
            assert (await agent.settled()).text == "steering"
            assert told(agent) == ["waiting", "steering"]


async def test_naming_a_model_delivers_what_waited_for_one(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with() as host:
        session = await host.scope.require(session_store).create(cwd=str(tmp_path))
        session.append("inbox/message", InboxMessage("m1", "waiting"))
        agent = await host.scope.require(agents).attach(session)
        agent.use_model("scripted:echo")
        assert (await agent.settled()).text == "waiting"


async def test_a_fork_counts_on_and_has_no_outcome_of_its_own_yet(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with() as host:
        registry = host.scope.require(agents)
        source = await registry.create(cwd=tmp_path, model="scripted:echo", id=A)
        await source.send("one")
        await source.settled()
        fork = await registry.attach(await host.scope.require(session_store).fork(A, id=B))
        assert fork.model == "scripted:echo"
        assert (await fork.settled()).turn == 0
        await fork.send("two")
        assert (await fork.settled()).turn == 2


async def test_what_a_fork_inherits_undelivered_is_not_its_own_to_deliver(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with() as host:
        store = host.scope.require(session_store)
        source = await store.create(cwd=str(tmp_path), id=A)
        source.append("inbox/message", InboxMessage("m1", "for the source"))
        fork = await store.fork(A, id=B)
        registry = host.scope.require(agents)
        child = await registry.attach(fork, model="scripted:echo")
        await child.send("for the fork")
        await child.settled()
        assert told(child) == ["for the fork"]
        parent = await registry.attach(source, model="scripted:echo")
        await parent.settled()
        assert told(parent) == ["for the source"]


async def test_a_session_has_one_agent(host_with: HostWith, tmp_path: Path) -> None:
    async with host_with() as host:
        session = await host.scope.require(session_store).create(cwd=str(tmp_path))
        registry = host.scope.require(agents)
        await registry.attach(session)
        with pytest.raises(AgentExists):
            await registry.attach(session)


async def test_state_is_made_once_for_each_agent_and_undone_in_reverse(
    host_with: HostWith, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    undone: list[str] = []

    def make(agent: Agent, stack: AsyncExitStack) -> list[str]:
        stack.callback(undone.append, f"first of {agent.session.id}")
        stack.callback(undone.append, f"second of {agent.session.id}")
        return [agent.session.id]

    def make_badly(_agent: Agent, stack: AsyncExitStack) -> int:
        stack.callback(undone.append, "half")
        raise ValueError("no")

    good, other, bad = StateKey("s", make), StateKey("s", make), StateKey("bad", make_badly)
    async with host_with() as host:
        registry = host.scope.require(agents)
        one = await registry.create(cwd=tmp_path, id=A)
        two = await registry.create(cwd=tmp_path, id=B)
        assert one.state(good) is one.state(good)
        assert one.state(good) is not one.state(other)
        assert one.state(good) is not two.state(good)
        with pytest.raises(ValueError, match="no"):
            one.state(bad)
        await one.dispose()
        assert undone == [
            "half",
            "second of a",
            "first of a",
            "second of a",
            "first of a",
        ]
        with pytest.raises(SessionClosed):
            one.state(good)
    assert undone[-2:] == ["second of b", "first of b"]
    assert caplog.text == ""


async def test_state_that_is_not_undone_cleanly_does_not_keep_the_session(
    host_with: HostWith, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def make(_agent: Agent, stack: AsyncExitStack) -> None:
        stack.callback(lambda: 1 // 0)

    async with host_with() as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path)
        agent.state(StateKey("bad", make))
        await agent.dispose()
        assert agent.session.closed
    assert "ZeroDivisionError" in caplog.text


async def test_senders_are_recorded(host_with: HostWith, tmp_path: Path) -> None:
    seen: list[str | None] = []

    def play(conversation: Conversation) -> Reply:
        seen.append(getattr(conversation.messages[-1], "sender", None))
        return Reply(text="ok")

    async with host_with(scripts=[Script("who", play)]) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:who")
        await agent.send("from a child", sender=B)
        await agent.settled()
    assert seen == ["b"]


async def test_many_messages_at_once_are_all_delivered_once_and_in_order(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(storage=True) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path, model="scripted:echo")
        texts = [f"message {n}" for n in range(50)]
        ids = await asyncio.gather(*(agent.send(text) for text in texts))
        await agent.settled()
        assert len(set(ids)) == 50
        assert told(agent) == texts


async def test_settings_that_make_no_sense_are_refused_by_name(host_with: HostWith) -> None:
    with pytest.raises(CompositionError, match="max_steps must be more than 0"):
        async with host_with(agent={"max_steps": 0}):
            pass
    async with host_with(agent={"tool_timeout_s": 30, "model": "scripted:echo"}):
        pass


async def test_the_model_of_the_row_is_used_where_none_is_named(
    host_with: HostWith, tmp_path: Path
) -> None:
    async with host_with(agent={"model": "scripted:echo"}) as host:
        agent = await host.scope.require(agents).create(cwd=tmp_path)
        await agent.send("hello")
        assert (await agent.settled()).text == "hello"
    async with host_with(agent={"model": "scripted"}) as host:
        with pytest.raises(ModelUnknown):
            await host.scope.require(agents).create(cwd=tmp_path)
