"""What plugins keep for one agent, and undo with it or when it moves to another preset."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any, TypeVar

import attrs

from heald_agent.contracts import Agent, StateKey

T = TypeVar("T")


@attrs.define(eq=False)
class States:
    """The states of an agent by their keys, in the order in which they were made."""

    _made: dict[StateKey[Any], Any] = attrs.field(factory=dict)
    _stacks: list[tuple[StateKey[Any], AsyncExitStack]] = attrs.field(factory=list)

    def of(self, agent: Agent, key: StateKey[T]) -> T:
        """Return the state of a kind, made when first asked for."""
        if key not in self._made:
            stack = AsyncExitStack()
            self._stacks.append((key, stack))
            self._made[key] = key.make(agent, stack)
        state: T = self._made[key]
        return state

    def take(self, into: AsyncExitStack, *, every: bool) -> None:
        """Forget states, the lasting ones too if `every` is meant, and push what undoes them."""
        taken = [(key, stack) for key, stack in self._stacks if every or not key.lasting]
        for key, stack in taken:
            self._made.pop(key, None)
            self._stacks.remove((key, stack))
            into.push_async_exit(stack)
