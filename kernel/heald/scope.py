"""Where hooks are called from: a scope sees its composition's rows, then the parent's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, overload

from heald.errors import ScopeClosed, ServiceAbsent
from heald.hooks import AsyncObserve, Collect, Observe, Provide, Wrap
from heald.tables import Contribution, Listener, Tables

if TYPE_CHECKING:
    from heald.composition import Composition
    from heald.host import Host

A = TypeVar("A")
B = TypeVar("B")
P = ParamSpec("P")
T = TypeVar("T")

_NOT_THE_LISTENERS = (KeyboardInterrupt, GeneratorExit)
"""What passes through `notify`: the person's interrupt, and the end of the one who notifies."""


class Scope:
    """Looks services up, collects contributions, tells listeners and runs middleware.

    A scope points at one composition and can be moved to another: that is how an agent changes its
    preset. Everything about one session goes through that session's scope.
    """

    __slots__ = ("__weakref__", "_at")

    def __init__(self, composition: Composition) -> None:
        self._at: Composition | _Closed = composition

    @property
    def host(self) -> Host:
        """The host this scope belongs to."""
        return self._at.host

    @property
    def composition(self) -> Composition:
        """The composition the scope points at."""
        return self._at.itself

    def move_to(self, composition: Composition) -> None:
        """Point the scope at another composition of the same host.

        Raises `ScopeClosed` if this scope is closed, or that composition is stopping.
        """
        self._at.itself  # noqa: B018 - a closed scope stays closed
        composition.refuse_if_closed()
        self._at = composition

    def close(self, owner: str) -> None:
        """Make every further use raise `ScopeClosed`, naming who has stopped."""
        self._at = _Closed(owner)

    def find(self, spec: Provide[T]) -> T | None:
        """Return the nearest service of this kind, or None."""
        return self._at.tables.provided.get(spec)

    def require(self, spec: Provide[T]) -> T:
        """Return the nearest service of this kind; raise `ServiceAbsent` saying what to mount."""
        try:
            service: T = self._at.tables.provided[spec]
        except KeyError:
            raise self._absent(spec) from None
        return service

    def collect(self, spec: Collect[T]) -> tuple[Contribution[T], ...]:
        """Return what rows contributed, nearest composition first, in row order."""
        return self._at.tables.collected.get(spec, ())

    @overload
    def notify(self, spec: Observe[P], /, *args: P.args, **kwargs: P.kwargs) -> None: ...
    @overload
    def notify(
        self, spec: AsyncObserve[P], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, None]: ...
    def notify(self, spec: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Tell every listener; one that raises is logged and counted, the others are told.

        For an async hook, await the result.
        """
        listeners = self._at.tables.listeners.get(spec, ())
        if spec.is_async:
            return _notify(listeners, args, kwargs)
        for listener in listeners:
            try:
                listener.call(*args, **kwargs)
            except _NOT_THE_LISTENERS:
                raise
            except BaseException as error:  # noqa: BLE001 - the others are to be told
                listener.failed(error)
        return None

    async def around(self, spec: Wrap[A, B], call: Callable[[A], Awaitable[B]], request: A) -> B:
        """Run `call` inside every middleware, nearest row outermost, host innermost."""
        for middleware in reversed(self._at.tables.wraps.get(spec, ())):
            call = partial(middleware, call_next=call)
        return await call(request)

    def _absent(self, spec: Provide[Any]) -> ServiceAbsent:
        plugin = self.host.discovery.owner_of(spec.owner)
        failed = next((row for row in self.composition.all_failed() if row.plugin == plugin), None)
        return ServiceAbsent(str(spec), spec.owner, plugin, failed)


async def _notify(
    listeners: tuple[Listener, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    task = asyncio.current_task()
    asked = task.cancelling() if task else 0
    if asked:
        # A cancellation that was asked for before may still be on its way; were it to arrive inside
        # a listener, it would look like the listener's own.
        await asyncio.sleep(0)
    for listener in listeners:
        try:
            await listener.call(*args, **kwargs)
        except _NOT_THE_LISTENERS:
            raise
        except BaseException as error:
            if task and task.cancelling() > asked and isinstance(error, asyncio.CancelledError):
                raise
            listener.failed(error)
        if task and task.cancelling() > asked:  # the listener swallowed what was the caller's
            raise asyncio.CancelledError


class _Closed:
    """Where a stopped row's scope points."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def _refuse(self) -> NoReturn:
        raise ScopeClosed(self._owner)

    @property
    def tables(self) -> Tables:
        self._refuse()

    @property
    def host(self) -> Host:
        self._refuse()

    @property
    def itself(self) -> Composition:
        self._refuse()
