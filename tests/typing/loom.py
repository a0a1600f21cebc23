"""One hook of each kind, for the files beside this one."""

from __future__ import annotations

from collections.abc import Iterable

from heald import collect, declare, observe, provide, wrap


class Thread: ...


class Silk(Thread): ...


class Pattern:
    name: str
    version: int


class Cloth: ...


@provide
def shed() -> Thread: ...


@collect
def notes() -> Iterable[str]: ...


@collect(key=id)
def threads() -> Iterable[Thread]: ...


@declare(key=lambda pattern: pattern.name, version=lambda pattern: pattern.version)
def patterns() -> Iterable[Pattern]: ...


@observe
def woven(cloth: str, length: int) -> None: ...


@observe
async def cut(cloth: str) -> None: ...


@wrap
async def dyed(request: str) -> Cloth: ...
