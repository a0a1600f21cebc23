"""What may be a hook specification, and what one says about itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

import pytest

import heald
from heald import HookSpecError, collect, declare, observe, provide, wrap
from heald.hooks import AsyncObserve, Collect, Declare, Observe, Provide, Wrap


def test_a_specification_has_a_kind_an_owner_a_colour_arguments_and_a_docstring() -> None:
    @provide
    def a_service() -> int:
        """Serve."""
        raise NotImplementedError

    @collect
    def some_things() -> Iterable[int]:
        """Bring."""
        raise NotImplementedError

    @declare(key=str, version=int)
    def some_words() -> Iterable[int]:
        """Say."""
        raise NotImplementedError

    @observe
    def it_happened(what: str, when: int) -> None:
        """Hear."""

    @observe
    async def it_ended(what: str) -> None:
        """Hear the end."""

    @wrap
    async def a_call(request: str) -> int:
        """Do."""
        raise NotImplementedError

    specs = [a_service, some_things, some_words, it_happened, it_ended, a_call]
    kinds = [Provide, Collect, Declare, Observe, AsyncObserve, Wrap]
    assert [type(spec) for spec in specs] == kinds
    words = ["provide", "collect", "declare", "observe", "observe", "wrap"]
    assert [spec.kind for spec in specs] == words
    assert [spec.is_async for spec in specs] == [False, False, False, False, True, True]
    assert it_happened.parameters == ("what", "when")
    assert a_call.parameters == ("request", "call_next")
    assert a_service.__doc__ == "Serve."
    owner = __name__.partition(".")[0]
    assert (a_service.owner, str(a_service)) == (owner, f"{owner}.a_service")
    assert repr(a_service) == f"<provide {owner}.a_service>"


def test_two_modules_of_a_package_may_use_one_name() -> None:
    def named(module: str) -> Provide[int]:
        def service() -> int:
            raise NotImplementedError

        service.__module__ = module
        return provide(service)

    one, two = named("shop.front"), named("shop.back")
    assert one.hook_name != two.hook_name
    assert one.owner == two.owner == "shop"


async def _wants_two(one: int, two: int) -> int:
    return one + two


def _plain(request: int) -> int:
    return request


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: provide(lambda name: name), "a provide hook takes no arguments"),  # type: ignore[misc, arg-type]
        (lambda: provide(_coroutine), "a provide hook is a plain function"),
        (lambda: collect(_coroutine), "a collect hook is a plain function"),  # type: ignore[arg-type]
        (lambda: observe(lambda *_: None), "_: use plain parameters without defaults"),
        (
            lambda: observe(lambda _=1: None),
            "^hook specification .* _: use plain parameters without defaults",
        ),
        (lambda: wrap(_wants_two), "a wrap hook is an async function of one request"),  # type: ignore[arg-type]
        (lambda: wrap(_plain), "a wrap hook is an async function"),  # type: ignore[arg-type]
        (lambda: declare(key=str, version=int)(lambda a: [a]), "takes no arguments"),  # type: ignore[misc, arg-type]
    ],
)
def test_a_function_that_cannot_be_a_specification_is_refused(
    make: Callable[[], Any], reason: str
) -> None:
    with pytest.raises(HookSpecError, match=reason) as caught:
        make()
    assert caught.value.code == "HOOK_SPEC_INVALID"
    assert isinstance(caught.value, TypeError)


async def _coroutine() -> int:
    return 1


def test_a_key_may_be_any_function_of_a_contribution() -> None:
    @collect(key=attrgetter("real"))
    def numbers() -> Iterable[int]:
        raise NotImplementedError

    assert numbers.key
    assert numbers.key(3) == 3


def test_what_the_kernel_publishes_is_listed_once_and_can_be_imported() -> None:
    import ast
    import inspect

    tree = ast.parse(inspect.getsource(heald))
    typed = {
        (alias.name, str(node.module).removeprefix("heald."))
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("heald.")
        for alias in node.names
    }
    assert typed == set(heald._HOME_OF.items())
    assert sorted(heald._HOME_OF) == heald.__all__
    for name in heald.__all__:
        assert getattr(heald, name) is not None
        assert name in dir(heald)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        heald.nothing  # type: ignore[attr-defined]  # noqa: B018 - asking is the test
