"""Hook specifications: typed objects that are declared once, implemented by rows, called by scopes.

A decorator turns a documented function into a specification. The object is the key: a scope is
asked with it, and a method says with it what it implements, so an editor can follow every use and a
type checker can compare every signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, overload

import pluggy

from heald.errors import HookSpecError

PROJECT = "heald"
"""The pluggy project name."""

A = TypeVar("A")
B = TypeVar("B")
F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
T = TypeVar("T")

Next: TypeAlias = Callable[[A], Awaitable[B]]
"""What a wrap implementation calls to go on inwards."""

_hookspec = pluggy.HookspecMarker(PROJECT)
_hookimpl = pluggy.HookimplMarker(PROJECT)
_IMPLEMENTS = "heald_implements"
_PLUGGY_MARK = f"{PROJECT}_impl"


class Spec:
    """What every kind of hook specification has: a name, an owner, arguments and a colour."""

    kind = "hook"
    parameters: tuple[str, ...]
    """The names an implementation's parameters must have, after `self`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        self.module = function.__module__ or "__main__"
        self.owner = self.module.partition(".")[0]
        """The import package whose plugin calls this hook."""
        self.is_async = inspect.iscoroutinefunction(function)
        self.function = function
        self.pluggy_function = _hookspec(function)
        """What pluggy compares implementations with."""
        self.__doc__ = inspect.getdoc(function)
        self.parameters = self._parameters()
        self.hook_name = f"{self.module}.{self.name}".replace(".", "__")
        """The name pluggy knows it by; two modules of a package may use one name."""

    def _parameters(self) -> tuple[str, ...]:
        plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = inspect.signature(self.function).parameters.values()
        if odd := [p.name for p in parameters if p.kind is not plain or p.default is not p.empty]:
            raise HookSpecError(
                str(self), f"{', '.join(odd)}: use plain parameters without defaults"
            )
        return tuple(p.name for p in parameters)

    def _refuse_parameters(self) -> None:
        if self.parameters:
            raise HookSpecError(str(self), f"a {self.kind} hook takes no arguments")
        self._refuse_async()

    def _refuse_async(self) -> None:
        if self.is_async:
            raise HookSpecError(str(self), f"a {self.kind} hook is a plain function")

    def __str__(self) -> str:
        return f"{self.owner}.{self.name}"

    def __repr__(self) -> str:
        return f"<{self.kind} {self}>"


class Provide(Spec, Generic[T]):
    """A service: at most one in a composition, and the nearest wins."""

    kind = "provide"

    def __init__(self, function: Callable[[], T]) -> None:
        super().__init__(function)
        self._refuse_parameters()


class Collect(Spec, Generic[T]):
    """Contributions from any number of rows, in row order, each with its origin."""

    kind = "collect"

    def __init__(
        self, function: Callable[[], Iterable[T]], key: Callable[[Any], Hashable] | None
    ) -> None:
        super().__init__(function)
        self.key = key
        self._refuse_parameters()


class Declare(Spec, Generic[T]):
    """Vocabulary of the whole process, declared by plugin classes, mounted or not."""

    kind = "declare"

    def __init__(
        self,
        function: Callable[[], Iterable[T]],
        key: Callable[[Any], str],
        version: Callable[[Any], int],
    ) -> None:
        super().__init__(function)
        self.key = key
        self.version = version
        self._refuse_parameters()


class Observe(Spec, Generic[P]):
    """A plain listener that is told after the fact."""

    kind = "observe"

    def __init__(self, function: Callable[P, None]) -> None:
        super().__init__(function)


class AsyncObserve(Spec, Generic[P]):
    """An async listener; the one who notifies waits for each in turn."""

    kind = "observe"

    def __init__(self, function: Callable[P, Coroutine[Any, Any, None]]) -> None:
        super().__init__(function)


class Wrap(Spec, Generic[A, B]):
    """Async middleware around one call: `(request, call_next)`."""

    kind = "wrap"

    def __init__(self, function: Callable[[A], Coroutine[Any, Any, B]]) -> None:
        super().__init__(function)
        if len(self.parameters) != 1 or not self.is_async:
            raise HookSpecError(str(self), "a wrap hook is an async function of one request")
        self.parameters = ("request", "call_next")
        self.pluggy_function = _middleware


@_hookspec
def _middleware(request: Any, call_next: Any) -> Any:
    """Have the parameters every wrap implementation has."""


def provide(function: Callable[[], T]) -> Provide[T]:
    """Make a service specification from a function that returns the service's type."""
    return Provide(function)


@overload
def collect(function: Callable[[], Iterable[T]], /) -> Collect[T]: ...
@overload
def collect(
    *, key: Callable[[Any], Hashable]
) -> Callable[[Callable[[], Iterable[T]]], Collect[T]]: ...
def collect(
    function: Callable[[], Iterable[Any]] | None = None,
    /,
    *,
    key: Callable[[Any], Hashable] | None = None,
) -> Any:
    """Make a contribution specification; `key` of a contribution finds duplicates."""
    if function is not None:
        return Collect(function, key)
    return lambda function: Collect(function, key)


def declare(
    *, key: Callable[[Any], str], version: Callable[[Any], int]
) -> Callable[[Callable[[], Iterable[T]]], Declare[T]]:
    """Make a vocabulary specification; entries of one key and version are one."""
    return lambda function: Declare(function, key, version)


@overload
def observe(function: Callable[P, Coroutine[Any, Any, None]]) -> AsyncObserve[P]: ...
@overload
def observe(function: Callable[P, None]) -> Observe[P]: ...
def observe(function: Callable[..., Any]) -> Any:
    """Make a listener specification, plain or async as the function is."""
    return (AsyncObserve if inspect.iscoroutinefunction(function) else Observe)(function)


def wrap(function: Callable[[A], Coroutine[Any, Any, B]]) -> Wrap[A, B]:
    """Make a middleware specification from the async function that is wrapped."""
    return Wrap(function)


@overload
def implements(
    spec: Provide[T],
) -> Callable[[Callable[[Any], T]], Callable[[Any], T]]: ...
@overload
def implements(
    spec: Collect[T] | Declare[T],
) -> Callable[[Callable[[Any], Iterable[T]]], Callable[[Any], Iterable[T]]]: ...
@overload
def implements(
    spec: Observe[P],
) -> Callable[[Callable[Concatenate[Any, P], None]], Callable[Concatenate[Any, P], None]]: ...
@overload
def implements(
    spec: AsyncObserve[P],
) -> Callable[
    [Callable[Concatenate[Any, P], Coroutine[Any, Any, None]]],
    Callable[Concatenate[Any, P], Coroutine[Any, Any, None]],
]: ...
@overload
def implements(
    spec: Wrap[A, B],
) -> Callable[
    [Callable[[Any, A, Next[A, B]], Coroutine[Any, Any, B]]],
    Callable[[Any, A, Next[A, B]], Coroutine[Any, Any, B]],
]: ...
def implements(spec: Any) -> Callable[[Any], Any]:
    """Mark a method as an implementation of `spec`, under whatever name suits the class.

    The implementation of a `declare` hook is a class method, with `@classmethod` outermost.
    What does not fit is reported when the plugin is composed, with file and row.
    """

    def mark(function: F) -> F:
        setattr(function, _IMPLEMENTS, spec)
        name = spec.hook_name if isinstance(spec, Spec) else None
        return _hookimpl(specname=name)(function)

    return mark


def implemented(function: object) -> object | None:
    """Return what `function` was marked to implement; pluggy's own options if only pluggy did.

    Only the function's own attributes are asked: a mock would answer to any name.
    """
    marks: dict[str, object] = getattr(function, "__dict__", {})
    return marks.get(_IMPLEMENTS) or marks.get(_PLUGGY_MARK)


def is_remarked(function: object, spec: Spec) -> bool:
    """Say whether a raw pluggy marker was put on top, which could change the name or the order."""
    options: dict[str, object] = vars(function)[_PLUGGY_MARK]
    return {key: value for key, value in options.items() if value} != {"specname": spec.hook_name}
