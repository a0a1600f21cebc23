"""Ten thousand skills: a bounded prompt, and nothing waits for all of them to be read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from heald_commands import command_directory

if TYPE_CHECKING:
    from tests.plugins.skills.conftest import Library, OpenLibrary

MANY = 10_000


def fill(root: Path, count: int, text: str = "To do.") -> None:
    for number in range(count):
        directory = root / f"skill-{number:05}"
        directory.mkdir(parents=True)
        (directory / "SKILL.md").write_text(f"---\ndescription: {text}\n---\nNumber {number}.\n")


async def test_of_ten_thousand_the_prompt_names_a_hundred_and_all_can_be_called(
    library: Library,
) -> None:
    fill(library.project, MANY)
    agent = await library.agent()
    directory = library.above.scope.require(command_directory)

    prompt = await library.prompt(agent)

    assert prompt.count("\n- skill-") == 100
    assert prompt.endswith("[not listed: up to 9,900 more, which can be called by name]")
    assert "Number 9999." in await library.say(agent, "skill-09999")
    assert "10,000, and none is called so" in await library.say(agent, "xyzzy")
    assert len(await library.service.catalogue(library.cwd)) == MANY
    await directory.run(agent.session, "/skill-09998")
    await agent.settled()
    messages = [e.data["text"] for e in agent.session.hot() if e.type == "user/message"]
    assert "Number 9998." in messages[-1]


async def test_how_many_are_named_is_configured(open_library: OpenLibrary) -> None:
    async with open_library(config={"listed": 2}) as library:
        fill(library.project, 3)

        prompt = await library.prompt(await library.agent())

    assert re.findall(r"^- skill-0000(\d)", prompt, re.MULTILINE) == ["0", "1"]
    assert "[not listed: up to 1 more" in prompt


async def test_long_descriptions_leave_room_for_fewer(library: Library) -> None:
    fill(library.project, 60, "x" * 2_000)

    prompt = await library.prompt(await library.agent())

    assert len(prompt) < 34_000
    assert prompt.count("\n- skill-") == 31
    assert "[not listed: up to 29 more" in prompt


async def test_a_list_that_is_just_full_says_nothing_of_more(open_library: OpenLibrary) -> None:
    async with open_library(config={"listed": 3}) as library:
        fill(library.project, 3)
        (library.project / "assets").mkdir()

        prompt = await library.prompt(await library.agent())

    assert prompt.endswith("- skill-00002: To do.")


async def test_a_prompt_reads_no_more_skills_than_it_may(
    library: Library, looked: list[str]
) -> None:
    fill(library.project, 1_100, "[")
    fill(library.user, 200)

    prompt = await library.prompt(await library.agent())

    assert len(looked) == 1_001
    assert prompt.endswith("[not listed: up to 300 more, which can be called by name]")
