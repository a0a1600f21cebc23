"""Agents are told of skills, read them with a tool, and are given them by people."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from heald import Row
from heald_agent import AgentAbsent
from heald_commands import CommandRan, CommandUnknown, command_directory
from heald_session import Session, session_store
from heald_skills import SkillUnusable

if TYPE_CHECKING:
    from tests.plugins.conftest import Install
    from tests.plugins.skills.conftest import Library, OpenLibrary


def logged(session: Session, kind: str) -> list[Any]:
    return [event.data for event in session.hot() if event.type == kind]


async def test_the_prompt_lists_what_is_offered_and_nothing_else(library: Library) -> None:
    library.write(library.preset, "fold", "Fold a letter.")
    library.write(library.project, "sing", "Sing a song.")
    library.write(library.user, "fold", "Fold otherwise.")
    library.write(library.user, "broken").write_text("nothing")

    lines = (await library.prompt(await library.agent())).splitlines()

    assert "`skill`" in lines[0]
    assert lines[1:] == ["", "- fold: Fold a letter.", "- sing: Sing a song."]


async def test_without_skills_the_prompt_says_nothing_of_them(library: Library) -> None:
    assert await library.prompt(await library.agent()) == ""


async def test_an_agent_without_the_tool_is_told_of_no_skill(library: Library) -> None:
    library.write(library.project, "fold")

    agent = await library.agent(denied_tools=frozenset({"skill"}))

    assert await library.prompt(agent) == ""


async def test_each_session_has_the_skills_of_its_own_directory(
    library: Library, tmp_path: Path
) -> None:
    library.write(library.project, "fold")
    library.write(tmp_path / "other" / ".heald" / "skills", "sing")

    here, there = await library.agent(), await library.agent(tmp_path / "other")

    assert "- fold:" in await library.prompt(here)
    assert "- fold:" not in await library.prompt(there)
    assert "- sing:" in await library.prompt(there)
    assert "there is no skill 'fold'" in await library.say(there, "fold")


async def test_the_tool_returns_the_body_and_where_its_files_are(library: Library) -> None:
    library.write(library.project, "fold", body="Twice.\n\nSee corners.md.")
    agent = await library.agent()

    answer = await library.say(agent, "fold")

    assert answer == (
        f"Skill fold, in {library.project / 'fold'}; its files are named relative to there.\n\n"
        "Twice.\n\nSee corners.md."
    )
    (result,) = logged(agent.session, "tool/result")
    assert result["text"] == answer


async def test_the_tool_says_what_it_was_called_for_and_takes_a_slash(library: Library) -> None:
    library.write(library.project, "fold", body="Twice.")

    answer = await library.say(await library.agent(), "/fold a blue letter")

    assert answer.startswith("Arguments: a blue letter\n\nSkill fold, in ")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("fodl", "there is no skill 'fodl'; did you mean 'fold'?"),
        ("xyzzy", "there is no skill 'xyzzy'; known: fold"),
        ("../fold", "there is no skill '../fold'"),
        ("torn", "does not begin with front matter"),
    ],
)
async def test_the_tool_says_what_is_there_instead(library: Library, asked: str, told: str) -> None:
    library.write(library.project, "fold")
    library.write(library.project, "torn").write_text("torn")

    assert told in await library.say(await library.agent(), asked)


async def test_an_edit_is_there_for_the_next_turn_of_a_running_agent(library: Library) -> None:
    agent = await library.agent()
    library.write(library.project, "fold", "Fold a letter.", "Twice.")
    assert "- fold: Fold a letter." in await library.prompt(agent)

    library.write(library.project, "fold", "Fold a map.", "Thrice.")
    library.write(library.project, "sing")

    assert "Thrice." in await library.say(agent, "fold")
    assert "- fold: Fold a map.\n- sing: To sing." in await library.prompt(agent)

    (library.project / "fold" / "SKILL.md").unlink()

    assert "- fold" not in await library.prompt(agent)
    assert "there is no skill 'fold'" in await library.say(agent, "fold")


async def test_a_skill_that_is_typed_after_a_slash_is_a_message_to_the_agent(
    library: Library,
) -> None:
    library.write(library.project, "fold", body="Twice.")
    agent = await library.agent()

    told = await library.above.scope.require(command_directory).run(agent.session, "/fold a letter")
    await agent.settled()

    text = (
        f"/fold a letter\n\nSkill fold, in {library.project / 'fold'}; its files are named "
        "relative to there.\n\nTwice."
    )
    assert told == "The agent was given the skill fold."
    assert [m["text"] for m in logged(agent.session, "user/message")] == [text]
    ran = [CommandRan(**data) for data in logged(agent.session, "command/ran")]
    assert ran == [CommandRan("fold", "a letter", told)]


async def test_every_offered_skill_is_a_command_and_a_new_one_at_once(library: Library) -> None:
    library.write(library.project, "fold")
    library.write(library.project, "torn").write_text("torn")
    session = (await library.agent()).session
    directory = library.above.scope.require(command_directory)

    before = await directory.catalogue(session)
    library.write(library.project, "sing")
    after = await directory.catalogue(session)

    assert [c.value.name for c in before if c.origin.row == "skills"] == ["fold"]
    assert [c.value.name for c in after if c.origin.row == "skills"] == ["fold", "sing"]
    assert {c.value.description for c in before if c.origin.row == "skills"} == {"To fold."}


async def test_a_broken_skill_that_is_typed_says_what_is_wrong_and_sends_nothing(
    library: Library,
) -> None:
    library.write(library.project, "torn").write_text("torn")
    agent = await library.agent()

    with pytest.raises(SkillUnusable, match="does not begin with front matter"):
        await library.above.scope.require(command_directory).run(agent.session, "/torn")

    assert logged(agent.session, "inbox/message") == []
    assert [data["is_error"] for data in logged(agent.session, "command/ran")] == [True]


async def test_what_is_no_skill_is_an_unknown_command(library: Library) -> None:
    library.write(library.project, "fold")
    agent = await library.agent()

    with pytest.raises(CommandUnknown, match="did you mean 'fold'"):
        await library.above.scope.require(command_directory).run(agent.session, "/fodl")


async def test_a_command_of_another_plugin_wins_and_the_skill_is_left_to_the_tool(
    open_library: OpenLibrary, install: Install
) -> None:
    from heald import NoConfig, Plugin, implements
    from heald_commands import Command, CommandCall, commands

    async def run(_: CommandCall) -> str:
        return "the command"

    class FoldingPlugin(Plugin[NoConfig]):
        @implements(commands)
        def bring(self) -> tuple[Command, ...]:
            return (Command("fold", "Of a row.", run),)

    install(folding=FoldingPlugin)
    async with open_library(above=[Row("folding", "folding")]) as library:
        library.write(library.project, "fold", body="Twice.")
        agent = await library.agent()
        directory = library.above.scope.require(command_directory)

        catalogue = await directory.catalogue(agent.session)

        assert [c.origin.row for c in catalogue if c.value.name == "fold"] == ["folding"]
        assert await directory.run(agent.session, "/fold") == "the command"
        assert "Twice." in await library.say(agent, "fold")


async def test_only_sessions_on_the_composition_have_its_skills(library: Library) -> None:
    library.write(library.project, "fold")
    bare = await library.host.mount("preset bare", [])
    on_bare = type(library)(
        library.host, bare, library.preset, library.project, library.user, library.cwd
    )
    agent = await on_bare.agent()

    assert await library.prompt(agent) == ""
    assert "There is no tool 'skill'" in await library.say(agent, "fold")


async def test_a_session_that_has_no_agent_is_given_no_skill(library: Library) -> None:
    library.write(library.project, "fold")
    store = library.host.scope.require(session_store)
    session = await store.create(cwd=str(library.cwd), composition=library.above)

    with pytest.raises(AgentAbsent, match="no agent"):
        await library.above.scope.require(command_directory).run(session, "/fold")


async def test_a_root_that_cannot_be_read_is_told_of_once_and_the_others_are_listed(
    library: Library, caplog: pytest.LogCaptureFixture
) -> None:
    library.write(library.project, "fold")
    library.user.symlink_to(library.user)
    agent = await library.agent()

    with caplog.at_level(logging.WARNING, logger="heald_skills"):
        for _ in range(2):
            assert (await library.prompt(agent)).endswith("- fold: To fold.")

    (record,) = caplog.records
    assert "user skills" in record.getMessage()
