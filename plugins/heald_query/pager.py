"""Shows what is read piece by piece in the person's pager, which may take its time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import click

from heald_persistence import Damage
from heald_session import Event


async def page(items: AsyncIterator[Event | Damage], told: Callable[[Event | Damage], str]) -> bool:
    """Show items in a pager, reading no further than it asks; say if any was damage."""
    loop = asyncio.get_running_loop()
    damaged = False

    async def following() -> Event | Damage | None:
        return await anext(items, None)

    def lines() -> Iterator[str]:
        nonlocal damaged
        between = ""  # click ends the last line itself
        while True:
            item = asyncio.run_coroutine_threadsafe(following(), loop).result()
            if item is None:
                return
            damaged = damaged or isinstance(item, Damage)
            yield between + told(item)
            between = "\n"

    await asyncio.to_thread(click.echo_via_pager, lines)
    return damaged
