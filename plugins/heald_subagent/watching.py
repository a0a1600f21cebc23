"""Goes on showing lines that change, on a terminal in their place, elsewhere as they change."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence

import click

_BETWEEN_LOOKS = 1.0
"""Seconds between two looks: other processes tell nobody what they write."""


async def watched(look: Callable[[], Awaitable[Sequence[str]]]) -> None:
    """Show what `look` returns, again and again, until the task is cancelled."""
    if sys.stdout.isatty():
        await _redrawn(look)
        return
    shown: frozenset[str] = frozenset()
    while True:
        lines = await look()
        for line in lines:
            if line not in shown:
                click.echo(line)
        shown = frozenset(lines)
        await asyncio.sleep(_BETWEEN_LOOKS)


async def _redrawn(look: Callable[[], Awaitable[Sequence[str]]]) -> None:
    from rich.live import Live  # noqa: PLC0415 - slow to load, and for terminals only
    from rich.text import Text  # noqa: PLC0415 - as Live

    with Live(auto_refresh=False, vertical_overflow="ellipsis") as live:
        while True:
            live.update(Text("\n".join(await look())), refresh=True)
            await asyncio.sleep(_BETWEEN_LOOKS)
