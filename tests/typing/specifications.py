"""What checkers must say about functions that are to become hook specifications.

A line that must be refused carries an ignore, and an ignore that is not needed is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_type

from heald import collect, declare, observe, provide, wrap
from heald.hooks import AsyncObserve, Collect, Declare, Observe, Provide, Wrap


@provide
def service() -> int: ...


@collect
def things() -> Iterable[str]: ...


@declare(key=str, version=int)
def words() -> Iterable[bytes]: ...


@observe
def happened(what: str, when: int) -> None: ...


@observe
async def ended(what: str) -> None: ...


@wrap
async def call(request: str) -> bytes: ...


assert_type(service, Provide[int])
assert_type(things, Collect[str])
assert_type(words, Declare[bytes])
assert_type(happened, Observe[[str, int]])  # type: ignore[assert-type] # the names are kept too
assert_type(ended, AsyncObserve[[str]])  # type: ignore[assert-type] # the names are kept too
assert_type(call, Wrap[str, bytes])


@provide  # type: ignore[arg-type]
def service_of_something(name: str) -> int: ...


@collect  # type: ignore[arg-type]
def one_thing() -> int: ...


@collect(key=str)  # type: ignore[arg-type]
def things_of_something(name: str) -> Iterable[int]: ...


@declare(key=str)  # type: ignore[call-arg]
def words_without_version() -> Iterable[int]: ...


@observe  # type: ignore[arg-type]
def answered(what: str) -> int: ...


@wrap  # type: ignore[arg-type]
def plain_call(request: str) -> bytes: ...


@wrap  # type: ignore[arg-type]
async def call_of_two(request: str, more: int) -> bytes: ...
