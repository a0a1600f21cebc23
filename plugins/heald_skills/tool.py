"""The tool `skill`: what the model calls to learn how a kind of work is done."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated

import msgspec

from heald import did_you_mean
from heald_agent import AnyTool, Tool, ToolContext, ToolError
from heald_skills.errors import SkillUnusable
from heald_skills.library import Library

NAME = "skill"
_LONGEST_HINT = 2_000
"""Characters that the names of all skills may take where none was meant."""


class SkillArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `skill` is called with."""

    name: Annotated[str, msgspec.Meta(description="The skill's name.")]
    arguments: Annotated[
        str, msgspec.Meta(description="What it is to be used for, if it asks for something.")
    ] = ""


def skill_tool(library: Library) -> AnyTool:
    """Make the tool."""
    return Tool(
        name=NAME,
        description=(
            "Read a skill: instructions for a particular kind of work, and where the files that "
            "belong to it are. Then do as it says, with your other tools."
        ),
        arguments=SkillArguments,
        run=partial(_run, library),
        parallel=True,
        changes=False,
    )


async def _run(library: Library, arguments: SkillArguments, context: ToolContext) -> str:
    name = arguments.name.strip().removeprefix("/")
    if (skill := await library.find(name, context.cwd)) is None:
        offered = [s.name for s in await library.catalogue(context.cwd) if s.offered]
        hint = await asyncio.to_thread(did_you_mean, name, offered)
        if len(hint) > _LONGEST_HINT:
            hint = f"there are {len(offered):,}, and none is called so"
        raise ToolError(f"there is no skill {name!r}; {hint}")
    try:
        text = await library.text(skill)
    except SkillUnusable as error:
        raise ToolError(error.message()) from error
    asked = arguments.arguments.strip()
    return f"Arguments: {asked}\n\n{text}" if asked else text
