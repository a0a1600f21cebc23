"""The plugin that lets a model ask the person."""

from __future__ import annotations

from collections.abc import Iterable

from heald import NoConfig, Plugin, implements
from heald_agent import AnyTool, tools
from heald_ask.ask_person import ASK_PERSON


class AskPlugin(Plugin[NoConfig]):
    """Contributes `ask_person`."""

    @implements(tools)
    def tool(self) -> Iterable[AnyTool]:
        return (ASK_PERSON,)
