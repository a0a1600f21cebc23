"""What a file of derived data holds."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Schema:
    """What a file of derived data holds, and how it is told from every other file."""

    name: str
    """What the file is named after, and what people read about it: `checkpoints`."""
    version: int
    """Raised when the tables change: another version is another file."""
    application_id: int
    """Marks a SQLite file as one of these, in its header; 32 bits, of one's own choice."""
    script: str
    """The SQL that makes the tables."""
