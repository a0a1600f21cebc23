"""The slash command `/model`: which model a session uses, and the choice of another."""

from __future__ import annotations

from heald_agent.contracts import Agents
from heald_agent.errors import AgentAbsent
from heald_agent.hookspecs import models
from heald_commands import Command, CommandCall
from heald_session import Session


def model_command(agents: Agents) -> Command:
    """Make the command for a host's agents."""

    async def run(call: CommandCall) -> str:
        agent = agents.get(call.session.id)
        if agent is None:
            raise AgentAbsent(call.session.id)
        if call.arguments:
            agent.use_model(call.arguments)
            return f"The model is now {agent.model}."
        return f"The model is {agent.model or 'not chosen'}. {_choice(call.session)}"

    return Command("model", "Show the model, or choose another: /model ADAPTER:NAME", run)


def _choice(session: Session) -> str:
    names = sorted(found.value.name for found in session.scope.collect(models))
    adapters = ", ".join(names) if names else "none"
    return f"Choose another with /model ADAPTER:NAME; adapters: {adapters}."
