"""Waiting that ends when the work is no longer wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from heald import CancelToken


@contextmanager
def unwanted(cancel: CancelToken) -> Iterator[asyncio.Future[None]]:
    """Give a future that is done once the token is cancelled, to wait for beside the work."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle() -> None:
        if not future.done():
            future.set_result(None)

    cancel.on_cancel(settle, owner=future)
    try:
        yield future
    finally:
        cancel.forget(future)
