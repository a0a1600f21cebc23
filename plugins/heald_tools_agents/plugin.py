"""The row that gives agents the tools to delegate."""

from __future__ import annotations

from collections.abc import Iterable

from heald import NoConfig, Plugin, implements
from heald_agent import AnyTool, tools
from heald_subagent import subagents
from heald_tools_agents.delegating import SEND_MESSAGE, SUBAGENT, WAIT_AGENTS
from heald_tools_agents.roster import LIST_AGENTS


class AgentToolsPlugin(Plugin[NoConfig]):
    """Contributes `subagent`, `send_message`, `wait_agents` and `list_agents`."""

    requires = (subagents,)

    @implements(tools)
    def contribute_tools(self) -> Iterable[AnyTool]:
        return (SUBAGENT, SEND_MESSAGE, WAIT_AGENTS, LIST_AGENTS)
