"""The hook that the kernel owns: what a host tells its rows."""

from __future__ import annotations

from heald.hooks import observe


@observe
async def host_closing() -> None:
    """Hear that the host is about to stop, while every row of every composition still runs.

    For work in progress that needs them all: whoever runs something ends it here. All listeners
    together have as long as one row has to stop.
    """
