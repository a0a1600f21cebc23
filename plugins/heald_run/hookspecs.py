"""The hook that headless runs own."""

from __future__ import annotations

from heald import provide
from heald_run.progress import ProgressFeed


@provide
def progress_feed() -> ProgressFeed:
    """Follow what a session and its subagents do."""
    ...
