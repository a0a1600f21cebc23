"""The base class of plugins, and what the kernel gives one when it constructs it."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args, get_origin

import attrs

from heald.hooks import Provide

if TYPE_CHECKING:
    from heald.scope import Scope


@attrs.frozen
class NoConfig:
    """The configuration of a plugin that has nothing to configure."""


C = TypeVar("C")


@attrs.frozen(eq=False)
class RowContext(Generic[C]):
    """What the kernel gives a plugin when it constructs it for a row."""

    row: str
    config: C
    scope: Scope
    """Where the row looks things up for its own needs; a session has a scope of its own."""
    stack: AsyncExitStack
    """Undone in reverse, in the task that ran `start`, when the row stops or fails to start."""
    logger: logging.Logger


class Plugin(Generic[C]):
    """One use of a plugin in a composition: subclass it, name the subclass by an entry point.

    The type argument is the configuration class (attrs), structured strictly from the row's
    `config`. A row object is shared by every agent of its composition, so it holds nothing about
    one session.
    """

    Config: ClassVar[type[Any]] = NoConfig
    requires: ClassVar[tuple[Provide[Any], ...]] = ()
    """Services the plugin cannot live without; they are there when `start` is called."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is Plugin and isinstance(get_args(base)[0], type):
                cls.Config = get_args(base)[0]

    def __init__(self, context: RowContext[C]) -> None:
        self.row = context.row
        self.config = context.config
        self.scope = context.scope
        self.stack = context.stack
        self.logger = context.logger

    async def start(self) -> None:
        """Set up what the row needs; the row's hooks appear after this returns."""

    async def stop(self) -> None:
        """Take leave; the row's hooks vanished before this is called, `stack` is undone after."""
