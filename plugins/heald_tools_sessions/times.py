"""Times as the tools take them: ISO 8601, in UTC unless a zone is named, as they give them."""

from __future__ import annotations

from datetime import UTC, datetime

from heald_agent import ToolError


def read_time(written: str) -> int:
    """Return a time as milliseconds since the epoch; raises `ToolError`."""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        raise ToolError(f"since={written!r} is no date; write it like 2025-01-31") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
