"""The row that gives agents the tools to look into sessions."""

from __future__ import annotations

from collections.abc import Iterable

from heald import NoConfig, Plugin, implements
from heald_agent import AnyTool, tools
from heald_query import session_query
from heald_tools_sessions.searching import SEARCH_SESSIONS
from heald_tools_sessions.tracing import SESSION_LINEAGE
from heald_tools_sessions.windows import READ_SESSION


class SessionToolsPlugin(Plugin[NoConfig]):
    """Contributes `search_sessions`, `read_session` and `session_lineage`."""

    requires = (session_query,)

    @implements(tools)
    def contribute_tools(self) -> Iterable[AnyTool]:
        return (SEARCH_SESSIONS, READ_SESSION, SESSION_LINEAGE)
