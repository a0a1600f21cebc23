"""What checkers must say about calls of hooks.

A line that must be refused carries an ignore, and an ignore that is not needed is an error.
"""

from __future__ import annotations

from typing import assert_type

from tests.typing.loom import (
    Cloth,
    Pattern,
    Thread,
    cut,
    dyed,
    notes,
    patterns,
    shed,
    threads,
    woven,
)

import heald
from heald import Contribution, Host, Scope, Vocabulary

heald.provied  # type: ignore[attr-defined]  # noqa: B018


def services(scope: Scope) -> None:
    assert_type(scope.require(shed), Thread)
    assert_type(scope.find(shed), Thread | None)

    scope.require(threads)  # type: ignore[arg-type]
    scope.require(patterns)  # type: ignore[arg-type]
    scope.require(woven)  # type: ignore[arg-type]
    scope.require(dyed)  # type: ignore[arg-type]
    scope.require("shed")  # type: ignore[arg-type]
    scope.find(threads)  # type: ignore[arg-type]
    scope.find(shed).weave()  # type: ignore[union-attr]
    shed()  # type: ignore[operator]


def contributions(scope: Scope) -> None:
    assert_type(scope.collect(threads), tuple[Contribution[Thread], ...])
    assert_type([one.value for one in scope.collect(notes)], list[str])

    scope.collect(shed)  # type: ignore[arg-type]
    scope.collect(patterns)  # type: ignore[arg-type]
    scope.collect(cut)  # type: ignore[arg-type]
    scope.collect(threads, "silk")  # type: ignore[call-arg]


def vocabulary(host: Host) -> None:
    assert_type(host.vocabulary(patterns), Vocabulary[Pattern])
    assert_type(host.vocabulary(patterns).get("twill"), Pattern | None)

    host.vocabulary(threads)  # type: ignore[arg-type]
    host.vocabulary(shed)  # type: ignore[arg-type]


async def listeners(scope: Scope) -> None:
    scope.notify(woven, "silk", 3)
    scope.notify(woven, "silk", length=3)
    await scope.notify(cut, "silk")
    await scope.notify(cut, cloth="silk")

    scope.notify(woven)  # type: ignore[call-overload]
    scope.notify(woven, "silk")  # type: ignore[call-overload]
    scope.notify(woven, 3, "silk")  # type: ignore[call-overload]
    scope.notify(woven, "silk", 3, 4)  # type: ignore[call-overload]
    scope.notify(woven, "silk", lenth=3)  # type: ignore[call-arg]
    await scope.notify(cut, 3)  # type: ignore[call-overload]
    await scope.notify(woven, "silk", 3)  # type: ignore[misc]
    scope.notify(cut, "silk")  # type: ignore[unused-coroutine]
    scope.notify(shed)  # type: ignore[call-overload]
    scope.notify(threads)  # type: ignore[call-overload]
    scope.notify(dyed, "silk")  # type: ignore[call-overload]


async def middleware(scope: Scope) -> None:
    async def dye(_: str) -> Cloth:
        return Cloth()

    async def dye_bytes(_: bytes) -> Cloth:
        return Cloth()

    async def dye_badly(request: str) -> str:
        return request

    def dye_at_once(_: str) -> Cloth:
        return Cloth()

    assert_type(await scope.around(dyed, dye, "silk"), Cloth)

    await scope.around(dyed, dye, 3)  # type: ignore[misc]
    await scope.around(dyed, dye_bytes, "silk")  # type: ignore[arg-type]
    await scope.around(dyed, dye_badly, "silk")  # type: ignore[arg-type]
    await scope.around(dyed, dye_at_once, "silk")  # type: ignore[arg-type]
    await scope.around(shed, dye, "silk")  # type: ignore[arg-type]
    await scope.around(cut, dye, "silk")  # type: ignore[arg-type]
    scope.around(dyed, dye, "silk")  # type: ignore[unused-coroutine]
