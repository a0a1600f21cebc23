"""The slash command `/compact`: a person has the model's view of a session made smaller."""

from __future__ import annotations

from heald_agent import AgentAbsent, agents
from heald_commands import Command, CommandCall
from heald_compaction.compacting import Compacted, compact
from heald_compaction.summary import prompt


def compact_command(base: str, keep: int) -> Command:
    """Make the command: `base` is what the model is asked, `keep` how much stays as it is."""

    async def run(call: CommandCall) -> str:
        agent = call.session.scope.require(agents).get(call.session.id)
        if agent is None:
            raise AgentAbsent(call.session.id)
        return _told(await compact(agent, prompt(base, call.arguments), keep=keep))

    description = "Replace what was said by a summary of it: /compact [what to keep]"
    return Command("compact", description, run)


def _told(done: Compacted) -> str:
    stay = f"; the {done.kept:,} newest stay as they are" if done.kept else ""
    return (
        f"The model now reads a summary of {done.after:,} characters in the place of "
        f"{done.messages:,} messages of {done.before:,}{stay}. The log has them all."
    )
