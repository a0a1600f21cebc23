"""What a person calls a session."""

from __future__ import annotations

import msgspec


class SessionRenamed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`session/renamed`: from here on the session has this title, whatever was said in it."""

    title: str
