"""The plugin that plays scripts as a model."""

from __future__ import annotations

from collections.abc import Iterable

from heald import NoConfig, Plugin, implements
from heald_agent import ModelAdapter, models
from heald_models_scripted.adapter import ScriptedModels
from heald_models_scripted.echo import ECHO
from heald_models_scripted.hookspecs import scripts
from heald_models_scripted.script import Script


class ScriptedModelsPlugin(Plugin[NoConfig]):
    """Contributes the adapter `scripted`, which plays the scripts that host rows contribute."""

    @implements(models)
    def contribute_adapter(self) -> Iterable[ModelAdapter]:
        """Contribute the adapter."""
        return (ScriptedModels(self.scope),)

    @implements(scripts)
    def contribute_scripts(self) -> Iterable[Script]:
        """Contribute the script to try things with."""
        return (ECHO,)
