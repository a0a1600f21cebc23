"""What checkers must say about implementations of hooks.

A line that must be refused carries an ignore, and an ignore that is not needed is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_type

import attrs
from tests.typing.loom import (
    Cloth,
    Pattern,
    Silk,
    Thread,
    cut,
    dyed,
    notes,
    patterns,
    shed,
    threads,
    woven,
)

from heald import Next, NoConfig, Plugin, implements


@attrs.frozen
class Settings:
    size: int = 1


class Right(Plugin[Settings]):
    requires = (shed,)

    async def start(self) -> None:
        assert_type(self.config, Settings)
        assert_type(self.config.size, int)
        assert_type(self.scope.require(shed), Thread)
        self.logger.info("%s", self.config.siez)  # type: ignore[attr-defined]

    @implements(shed)
    def narrower(self) -> Silk:
        return Silk()

    @implements(threads)
    def from_a_list(self) -> list[Silk]:
        return []

    @implements(notes)
    def from_a_generator(self) -> Iterator[str]:
        yield "n"

    @classmethod
    @implements(patterns)
    def declared(cls) -> Iterable[Pattern]:
        return ()

    @implements(woven)
    def heard(self, cloth: str, length: float) -> None: ...

    @implements(cut)
    async def heard_in_time(self, cloth: str) -> None: ...

    @implements(dyed)
    async def wrapped(self, request: str, call_next: Next[str, Cloth]) -> Cloth:
        return await call_next(request)


def used(plugin: Right) -> None:
    assert_type(plugin.narrower(), Thread)
    plugin.heard("silk", 3)
    plugin.heard("silk")  # type: ignore[call-arg]


class Wrong(Plugin[NoConfig]):
    requires = (threads,)  # type: ignore[assignment]

    @implements(shed)  # type: ignore[arg-type]
    def another_service(self) -> Cloth:
        return Cloth()

    @implements(shed)  # type: ignore[arg-type]
    def a_service_with_arguments(self, name: str) -> Thread:
        return Thread()

    @implements(shed)  # type: ignore[arg-type]
    async def an_async_service(self) -> Thread:
        return Thread()

    @implements(threads)  # type: ignore[arg-type]
    def other_things(self) -> list[Cloth]:
        return []

    @implements(threads)  # type: ignore[arg-type]
    def one_thing(self) -> Thread:
        return Thread()

    @classmethod
    @implements(patterns)  # type: ignore[arg-type]
    def other_words(cls) -> list[Thread]:
        return []

    @implements(woven)  # type: ignore[arg-type]
    def a_parameter_of_another_type(self, cloth: bytes, length: int) -> None: ...

    @implements(woven)  # type: ignore[arg-type]
    def a_parameter_of_another_name(self, cloth: str, size: int) -> None: ...

    @implements(woven)  # type: ignore[arg-type]
    def too_few_parameters(self, cloth: str) -> None: ...

    @implements(woven)  # type: ignore[arg-type]
    def too_many_parameters(self, cloth: str, length: int, more: int) -> None: ...

    @implements(woven)  # type: ignore[arg-type]
    async def async_where_plain_is_asked(self, cloth: str, length: int) -> None: ...

    @implements(cut)  # type: ignore[arg-type]
    def plain_where_async_is_asked(self, cloth: str) -> None: ...

    @implements(cut)  # type: ignore[arg-type]
    async def an_answer_where_none_is_asked(self, cloth: str) -> int:
        return 1

    @implements(dyed)  # type: ignore[arg-type]
    async def without_the_next(self, request: str) -> Cloth:
        return Cloth()

    @implements(dyed)  # type: ignore[arg-type]
    async def another_request(self, request: bytes, call_next: Next[bytes, Cloth]) -> Cloth:
        return Cloth()

    @implements(dyed)  # type: ignore[arg-type]
    async def another_answer(self, request: str, call_next: Next[str, Cloth]) -> str:
        return request

    @implements(dyed)  # type: ignore[arg-type]
    def plain_middleware(self, request: str, call_next: Next[str, Cloth]) -> Cloth:
        return Cloth()

    @implements("woven")  # type: ignore[call-overload, untyped-decorator]
    def by_a_name(self, cloth: str, length: int) -> None: ...

    @implements(Thread)  # type: ignore[call-overload, untyped-decorator]
    def no_hook_at_all(self) -> Any: ...
