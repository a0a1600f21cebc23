"""Every skill as a slash command: `/name arguments` gives it to the agent as a message."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import attrs

from heald_agent import AgentAbsent, agents
from heald_commands import Command, CommandCall
from heald_skills.contracts import Skill
from heald_skills.library import Library


@attrs.frozen
class SkillCommands:
    """The commands that skills are; implements `CommandSource`."""

    library: Library

    async def catalogue(self, cwd: Path | None) -> Sequence[Command]:
        return [self._command(s) for s in await self.library.catalogue(cwd) if s.offered]

    async def find(self, name: str, cwd: Path | None) -> Command | None:
        skill = await self.library.find(name, cwd)
        return None if skill is None else self._command(skill)

    def _command(self, skill: Skill) -> Command:
        return Command(skill.name, skill.description, partial(self._run, skill))

    async def _run(self, skill: Skill, call: CommandCall) -> str:
        """Send the agent what a skill says, as if the person had typed it."""
        text = await self.library.text(skill)
        line = f"/{skill.name} {call.arguments}".rstrip()
        agent = call.session.scope.require(agents).get(call.session.id)
        if agent is None:
            raise AgentAbsent(call.session.id)
        await agent.send(f"{line}\n\n{text}")
        return f"The agent was given the skill {skill.name}."
