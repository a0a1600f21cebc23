"""What a terminal can be shown of texts that anybody may have written."""

from __future__ import annotations


def visible(text: str) -> str:
    """Show control characters, which a name or a label may hold, instead of obeying them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
