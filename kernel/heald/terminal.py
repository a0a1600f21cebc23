"""What a terminal can be shown of texts that anybody may have written."""

from __future__ import annotations

import shlex


def visible(text: str) -> str:
    """Show control characters, which a name or a label may hold, instead of obeying them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def as_word(text: str) -> str:
    """Return a text as one word of a command line that a person is shown and may copy."""
    return shlex.quote(visible(text))
