"""Errors of the adapter for OpenAI-compatible servers."""

from __future__ import annotations

import attrs

from heald import HealdError


@attrs.define
class OpenAINotInstalled(HealdError, ImportError):
    """A request needs the package `openai`, which is not installed."""

    code = "OPENAI_NOT_INSTALLED"
    model: str

    def message(self) -> str:
        return f"model {self.model} needs the openai package; run pip install 'heald[openai]'"
