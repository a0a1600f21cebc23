"""Cancellation that a caller holds and a callee looks at."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from heald.errors import Cancelled

_logger = logging.getLogger("heald.cancel")


class CancelToken:
    """Says whether work is still wanted; the first cause wins.

    A token made with a parent is cancelled when the parent is, before the parent's own listeners
    hear of it. A token keeps its parent alive and not the other way round, so that a parent that
    lives long does not gather the tokens of finished work. Tokens belong to one event loop.
    """

    def __init__(self, parent: CancelToken | None = None) -> None:
        self._parent = parent
        self._cause = parent.cause if parent is not None else None
        self._children: WeakValueDictionary[int, CancelToken] = WeakValueDictionary()
        self._listeners: dict[object, Callable[[], None]] = {}
        if parent is not None and self._cause is None:
            parent._children[id(self)] = self  # noqa: SLF001 - the same class

    @property
    def cause(self) -> str | None:
        """Why the work was cancelled, or None while it is wanted."""
        return self._cause

    @property
    def cancelled(self) -> bool:
        """Whether the work is no longer wanted."""
        return self._cause is not None

    def cancel(self, cause: str = "cancelled") -> None:
        """Cancel, once; a later cause changes nothing. A listener that raises is logged."""
        if self._cause is not None:
            return
        self._cause = cause
        for child in list(self._children.values()):
            child.cancel(cause)
        listeners, self._listeners = self._listeners, {}
        for listener in listeners.values():
            try:
                listener()
            except Exception:
                _logger.exception("a listener of a cancellation failed; the others were told")

    def check(self) -> None:
        """Raise `Cancelled` if the work is no longer wanted."""
        if self._cause is not None:
            raise Cancelled(self._cause)

    def on_cancel(self, listener: Callable[[], None], *, owner: object | None = None) -> None:
        """Call `listener` when cancelled, at once if that has happened."""
        if self._cause is not None:
            listener()
        else:
            self._listeners[owner if owner is not None else listener] = listener

    def forget(self, owner: object) -> None:
        """Remove the listener that was added with this owner."""
        self._listeners.pop(owner, None)

    @contextmanager
    def cancelling(self, task: asyncio.Task[object]) -> Iterator[None]:
        """Cancel `task` if the token is cancelled inside the block."""

        def cancel() -> None:
            task.cancel()

        self.on_cancel(cancel)
        try:
            yield
        finally:
            self.forget(cancel)

    @contextmanager
    def as_future(self) -> Iterator[asyncio.Future[None]]:
        """Give a future that is done once the token is cancelled, to wait for beside the work."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settle() -> None:
            if not future.done():
                future.set_result(None)

        self.on_cancel(settle, owner=future)
        try:
            yield future
        finally:
            self.forget(future)


def raise_if_cancelled(cancel: CancelToken | None) -> None:
    """Raise `Cancelled` if there is a token and it was cancelled."""
    if cancel is not None:
        cancel.check()
