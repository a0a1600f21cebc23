"""The plugin that contributes the persona."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from heald import Plugin, implements
from heald_agent import Agent, PromptSection, prompt_sections


@attrs.frozen
class PersonaConfig:
    """What the persona says."""

    text: str
    """Plain text, used as it is but for blank lines around it."""


class PersonaPlugin(Plugin[PersonaConfig]):
    """Tells the model who it is and how it works."""

    @implements(prompt_sections)
    def persona(self) -> Iterable[PromptSection]:
        return (PromptSection("persona", self._render),)

    async def _render(self, agent: Agent) -> str:
        return self.config.text.strip()
