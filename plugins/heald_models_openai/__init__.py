"""The model adapter for OpenAI-compatible servers; needs the extra `openai`."""

from heald_models_openai.errors import OpenAINotInstalled

__all__ = ["OpenAINotInstalled"]
