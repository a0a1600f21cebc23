"""Goes on showing lines that change, on a terminal in their place, elsewhere as they change."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence

import click

from heald import counted

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

    with Live(auto_refresh=False) as live:
        while True:
            lines = _fitting(await look(), live.console.height - 1)
            text = Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
            live.update(text, refresh=True)
            await asyncio.sleep(_BETWEEN_LOOKS)


def _fitting(lines: Sequence[str], height: int) -> Sequence[str]:
    """Leave lines out before the last, which is of all of them, saying how many."""
    if len(lines) <= height:
        return lines
    shown = max(height - 2, 0)
    left_out = counted(len(lines) - 1 - shown, "more line")
    return [*lines[:shown], f"({left_out}; without --follow all are shown)", lines[-1]]
