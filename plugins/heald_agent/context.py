"""What every request of a turn carries besides messages: the system prompt and the tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import msgspec

from heald import Contribution, describe
from heald_agent.contracts import Agent
from heald_agent.errors import PromptSectionFailed, ToolInvalid
from heald_agent.hookspecs import prompt_sections, tools
from heald_agent.limits import Limits, limited
from heald_agent.schemas import schema_of
from heald_agent.tool import AnyTool, PromptSection
from heald_session import ToolSchema, TurnContext

Sections = Sequence[Contribution[PromptSection]]


@attrs.frozen
class TurnTools:
    """The tools a turn began with: those shown to the model are those that can be called."""

    available: Mapping[str, AnyTool]
    schemas: tuple[ToolSchema, ...]
    denied: frozenset[str]
    """Tools the rows contribute and the agent does not have."""


def tools_of(agent: Agent) -> TurnTools:
    """Return the tools of the agent's composition, in row order, without the denied ones.

    Raises `ToolInvalid`.
    """
    contributed = {c.value.name: c for c in agent.session.scope.collect(tools)}
    allowed = {n: c for n, c in contributed.items() if n not in agent.denied_tools}
    return TurnTools(
        available={name: c.value for name, c in allowed.items()},
        schemas=tuple(_schema(c) for c in allowed.values()),
        denied=frozenset(contributed) & agent.denied_tools,
    )


def sections_of(agent: Agent) -> Sections:
    """Return the prompt sections of the agent's composition, in row order."""
    return agent.session.scope.collect(prompt_sections)


async def system_prompt(
    agent: Agent, persona: str | None, sections: Sections, limits: Limits
) -> str:
    """Render the sections after the persona; raises `Cancelled` or `PromptSectionFailed`."""
    rendered = [await _rendered(section, agent, limits) for section in sections]
    parts = [part.strip("\n") for part in (persona or "", *rendered)]
    return "\n\n".join(part for part in parts if part.strip())


def differs(one: TurnContext | None, other: TurnContext | None) -> bool:
    """Say whether two contexts are not the same bytes."""
    return msgspec.json.encode(one) != msgspec.json.encode(other)


async def _rendered(section: Contribution[PromptSection], agent: Agent, limits: Limits) -> str:
    limits.cancel.check()
    name = f"prompt section {section.value.name} of {agent.session.id}"
    try:
        return await limited(section.value.render(agent), limits, name)
    except Exception as error:
        limits.cancel.check()
        raise PromptSectionFailed(
            section.value.name, section.origin.row, describe(error)
        ) from error


def _schema(tool: Contribution[AnyTool]) -> ToolSchema:
    shown = tool.value
    try:
        return ToolSchema(shown.name, shown.description, schema_of(shown.arguments))
    except (TypeError, KeyError) as error:
        raise ToolInvalid(shown.name, tool.origin.row, str(error)) from error
