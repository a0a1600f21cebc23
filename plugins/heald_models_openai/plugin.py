"""The plugin that asks OpenAI-compatible servers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from heald import Plugin, implements
from heald_agent import ModelAdapter, models
from heald_models_openai.adapter import OpenAIModels
from heald_models_openai.server import Server


@attrs.frozen
class OpenAIConfig:
    """Which server to ask; a second row with another `name` asks a second one."""

    name: str = "openai"
    """The word before the colon in `openai:gpt-...`."""
    base_url: str | None = None
    """Where the server is; else what OPENAI_BASE_URL says, else OpenAI's own."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the key."""
    timeout_s: float = 120.0
    """How long the server may send nothing."""
    parameters: dict[str, Any] = attrs.field(factory=dict)
    """Put into every request body as they are: temperature, reasoning_effort and so on."""


class OpenAIModelsPlugin(Plugin[OpenAIConfig]):
    """Contributes one adapter."""

    async def start(self) -> None:
        """Read the environment once, as the host was given it."""
        env = self.scope.host.env
        server = Server(
            base_url=self.config.base_url or env.get("OPENAI_BASE_URL") or None,
            key=env.get(self.config.api_key_env) or None,
            key_variable=self.config.api_key_env,
            timeout=self.config.timeout_s,
            parameters=self.config.parameters,
        )
        self._adapter = OpenAIModels(self.config.name, server)
        self.stack.push_async_callback(self._adapter.close)

    @implements(models)
    def contribute_adapter(self) -> Iterable[ModelAdapter]:
        """Contribute the adapter."""
        return (self._adapter,)
