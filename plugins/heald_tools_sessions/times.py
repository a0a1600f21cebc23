"""Times as the tools take and give them: ISO 8601, in UTC unless a zone is named."""

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


def told_time(milliseconds: int) -> str:
    """Return a time for a model; one that no calendar has, of a clock that was wrong, as it is."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"
    return moment.isoformat(timespec="seconds")
