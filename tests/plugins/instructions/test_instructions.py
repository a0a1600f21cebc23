"""What agents are told of AGENTS.md and CLAUDE.md, and what is logged of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heald import CompositionError
from heald_agent import Agent, agents
from heald_instructions import InstructionsRead
from heald_projection import projections
from heald_session import session_store

if TYPE_CHECKING:
    from tests.plugins.instructions.conftest import Desk, OpenDesk

Logged = Callable[[Agent], list[InstructionsRead]]


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


async def test_the_nearest_instructions_come_last_under_their_paths(desk: Desk) -> None:
    top, nested = desk.repository, desk.repository / "a" / "b"
    nested.mkdir(parents=True)
    (top / "AGENTS.md").write_text("\n# Far\n\nUse tabs.\n")
    (nested / "CLAUDE.md").write_text("\ufeffUse spaces.\n")

    prompt = await desk.prompt(await desk.agent(nested))

    assert prompt.startswith("Instructions that people left")
    assert prompt.endswith(
        f"# {top / 'AGENTS.md'}\n\n# Far\n\nUse tabs.\n\n# {nested / 'CLAUDE.md'}\n\nUse spaces."
    )


async def test_without_instructions_nothing_is_said_and_nothing_logged(
    desk: Desk, logged: Logged
) -> None:
    (desk.repository / "AGENTS.md").write_text(" \n")
    agent = await desk.agent()

    assert await desk.prompt(agent) == ""
    assert logged(agent) == []


async def test_the_root_of_the_repository_is_the_last_place_that_is_looked_in(
    desk: Desk, tmp_path: Path
) -> None:
    (tmp_path / "AGENTS.md").write_text("Above.")
    (desk.repository / "AGENTS.md").write_text("Within.")
    (desk.repository / "sub").mkdir()

    (only,) = await desk.said(desk.repository / "sub")

    assert only.endswith("Within.")


async def test_a_worktree_has_a_file_where_a_repository_has_a_directory(
    desk: Desk, tmp_path: Path
) -> None:
    (tmp_path / "AGENTS.md").write_text("Above.")
    (desk.repository / ".git").rmdir()
    (desk.repository / ".git").write_text("gitdir: elsewhere")

    assert await desk.said() == []


async def test_outside_a_repository_the_persons_home_is_the_last_place(
    desk: Desk, tmp_path: Path
) -> None:
    cwd = tmp_path / "home" / "notes"
    cwd.mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("Above.")
    (tmp_path / "home" / "AGENTS.md").write_text("Home.")
    (cwd / "AGENTS.md").write_text("Notes.")

    assert [text.splitlines()[-1] for text in await desk.said(cwd)] == ["Home.", "Notes."]


async def test_where_anyone_may_write_nobody_elses_words_are_taken(
    desk: Desk, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    cwd = shared / "mine"
    cwd.mkdir(parents=True)
    shared.chmod(0o1777)
    (shared / ".git").mkdir()
    (shared / "AGENTS.md").write_text("From anyone.")
    (cwd / "AGENTS.md").write_text("Mine.")

    (only,) = await desk.said(cwd)

    assert only.endswith("Mine.")


async def test_the_same_words_are_said_once(desk: Desk) -> None:
    nested = desk.repository / "nested"
    nested.mkdir()
    for place in (desk.repository, nested):
        (place / "AGENTS.md").write_text("Use tabs.")
    (nested / "CLAUDE.md").symlink_to("AGENTS.md")

    (only,) = await desk.said(nested)

    assert only == f"{nested / 'AGENTS.md'}\n\nUse tabs."


async def test_a_large_file_is_cut_with_a_note_and_not_read_further(
    open_desk: OpenDesk, logged: Logged
) -> None:
    async with open_desk({"max_file_bytes": 10}) as desk:
        file = desk.repository / "AGENTS.md"
        file.write_text("0123456789abcdef")
        os.truncate(file, 50 * 1024 * 1024)
        agent = await desk.agent()

        prompt = await desk.prompt(agent)

    assert prompt.endswith("\n\n0123456789\n[cut here: the file has 52,428,800 bytes]")
    assert logged(agent) == [
        InstructionsRead(str(file), digest("0123456789"), 50 * 1024 * 1024, truncated=True)
    ]


async def test_together_they_are_bounded_and_the_nearest_get_the_room(open_desk: OpenDesk) -> None:
    async with open_desk({"max_bytes": 10}) as desk:
        nested = desk.repository / "nested"
        nested.mkdir()
        (desk.repository / "AGENTS.md").write_text("far away")
        (nested / "AGENTS.md").write_text("nearby")

        far, near = await desk.said(nested)

    assert near.endswith("\n\nnearby")
    assert far.endswith("\n\nfar \n[cut here: the file has 8 bytes]".replace("far ", "far"))


@pytest.mark.parametrize("kind", ["circle", "directory", "pipe"])
async def test_what_cannot_be_read_is_said_and_logged_and_stops_nothing(
    desk: Desk, logged: Logged, kind: str
) -> None:
    file = desk.repository / "AGENTS.md"
    (desk.repository / "CLAUDE.md").write_text("Use tabs.")
    if kind == "circle":
        file.symlink_to("AGENTS.md")
    elif kind == "directory":
        file.mkdir()
    else:
        os.mkfifo(file)
    agent = await desk.agent()

    prompt = await desk.prompt(agent)
    await desk.prompt(agent)

    assert "Use tabs." in prompt
    assert "[it cannot be read: " in prompt
    problems = {Path(each.path).name: each.problem for each in logged(agent)}
    assert set(problems) == {"AGENTS.md", "CLAUDE.md"}
    assert problems["AGENTS.md"]
    assert problems["CLAUDE.md"] is None
    assert len(logged(agent)) == 2


async def test_bytes_that_are_no_text_do_not_break_the_turn(desk: Desk) -> None:
    (desk.repository / "AGENTS.md").write_bytes(b"Use \xff\x00tabs.")

    (only,) = await desk.said()

    assert only.endswith("Use \N{REPLACEMENT CHARACTER}\0tabs.")


async def test_each_change_is_logged_once_before_the_prompt_that_has_it(
    desk: Desk, logged: Logged
) -> None:
    file = desk.repository / "AGENTS.md"
    file.write_text("One.")
    agent = await desk.agent()

    for _ in range(2):
        assert "One." in await desk.prompt(agent)
    file.write_text("Two.")
    assert "Two." in await desk.prompt(agent)
    file.unlink()
    for _ in range(2):
        assert await desk.prompt(agent) == ""
    file.write_text("Two.")
    assert "Two." in await desk.prompt(agent)

    path = str(file)
    assert logged(agent) == [
        InstructionsRead(path, digest("One."), 4),
        InstructionsRead(path, digest("Two."), 4),
        InstructionsRead(path, None),
        InstructionsRead(path, digest("Two."), 4),
    ]
    types = [e.type for e in agent.session.hot()]
    first = types.index("instructions/read")
    assert types[first - 2 : first + 2] == [
        "turn/start",
        "user/message",
        "instructions/read",
        "turn/context",
    ]


async def test_a_session_that_is_resumed_knows_what_it_read(open_desk: OpenDesk) -> None:
    async with open_desk() as desk:
        (desk.repository / "AGENTS.md").write_text("One.")
        (desk.repository / "CLAUDE.md").write_text("Other.")
        agent = await desk.agent()
        await desk.prompt(agent)
        id_ = agent.session.id

    async with open_desk() as desk:
        (desk.repository / "AGENTS.md").write_text("Two.")
        agent = await desk.host.scope.require(agents).resume(id_, model="scripted:echo")
        before = agent.session.end

        assert "Two." in await desk.prompt(agent)

        own = [e.data for e in agent.session.hot(before) if e.type == "instructions/read"]
    assert [each["path"] for each in own] == [str(desk.repository / "AGENTS.md")]


async def test_a_fork_knows_what_its_first_events_say_was_read(desk: Desk) -> None:
    (desk.repository / "AGENTS.md").write_text("One.")
    agent = await desk.agent()
    await desk.prompt(agent)
    store = desk.host.scope.require(session_store)
    forked = await store.fork(agent.session.id)
    before = forked.end
    twin = await desk.host.scope.require(agents).attach(forked, model="scripted:echo")

    await desk.prompt(twin)

    assert [e.type for e in forked.hot(before) if e.type == "instructions/read"] == []


async def test_live_and_cold_folds_of_what_was_read_agree(desk: Desk) -> None:
    file = desk.repository / "AGENTS.md"
    agent = await desk.agent()
    for text in ("One.", "Two."):
        file.write_text(text)
        await desk.prompt(agent)
    session = agent.session
    registry = desk.host.scope.require(projections)
    fold = registry.fold(session.header, session.cut, ["instructionFiles"])
    async for event in session.read():
        fold.feed(event)

    live = registry.state(session, "instructionFiles")

    assert live == fold.state("instructionFiles") == {str(file): digest("Two.")}


async def test_the_files_are_named_by_configuration(open_desk: OpenDesk) -> None:
    async with open_desk({"files": ["HELP.md"]}) as desk:
        (desk.repository / "AGENTS.md").write_text("Agents.")
        (desk.repository / "HELP.md").write_text("Help.")

        (only,) = await desk.said()

    assert only.endswith("Help.")


@pytest.mark.parametrize(
    ("key", "value"),
    [("files", ["a/b.md"]), ("files", [".."]), ("files", [""]), ("max_bytes", 0)],
)
async def test_configuration_that_makes_no_sense_is_refused(
    open_desk: OpenDesk, key: str, value: object
) -> None:
    with pytest.raises(CompositionError, match=rf"config\.{key}"):
        async with open_desk({key: value}):
            pass
