"""Which server is asked, and how it is spoken of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

OPENAI = "https://api.openai.com/v1"
SECRET_LENGTH = 8
"""A shorter key is a placeholder for a server that wants none, and occurs in ordinary words."""

_CREDENTIALS = re.compile(r"//[^/@\s]*@")


@attrs.frozen(kw_only=True)
class Server:
    """Which server to ask, and as whom."""

    base_url: str | None
    """None is OpenAI's own."""
    key: str | None = attrs.field(repr=False)
    key_variable: str
    """The environment variable that the key comes from."""
    timeout: float
    parameters: Mapping[str, Any]
    """Put into every request body."""

    @property
    def url(self) -> str:
        """Where requests go."""
        return self.base_url or OPENAI

    @property
    def address(self) -> str:
        """The URL as people may see it, without what only the server should."""
        return _CREDENTIALS.sub("//", self.url.partition("?")[0])

    def redacted(self, text: str) -> str:
        """Return a text without the key and without credentials in a URL."""
        text = _CREDENTIALS.sub("//", text)
        secret = (self.key or "").strip()
        return text.replace(secret, "[key]") if len(secret) >= SECRET_LENGTH else text
