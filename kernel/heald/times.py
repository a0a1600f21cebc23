"""Times, as people and models read them."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo


def told_time(milliseconds: int, zone: tzinfo | None = None) -> str:
    """Return a time since the epoch as ISO 8601 to the second, in the local zone if none is named.

    What is stored may come from a clock that was wrong: a time that no calendar has is told as it
    is.
    """
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, tz=UTC).astimezone(zone)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"
    return moment.isoformat(timespec="seconds")
