"""Delegation: the service through which agents run their children and anybody lists them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import attrs

from heald import CancelToken, HealdError, Scope
from heald_agent import Agent, agents
from heald_session import SessionId, session_store
from heald_subagent.birth import bear, check_depth, continuable, one_shot, terms_of
from heald_subagent.children import Children, children_of
from heald_subagent.contracts import ChildResult, Delegation
from heald_subagent.errors import SubagentNotLive, SubagentUnauthorized
from heald_subagent.listing import Listing
from heald_subagent.results import result_of
from heald_subagent.resumption import authorize, resume
from heald_subagent.rows import SubagentRow
from heald_subagent.runs import Child, Errand

_logger = logging.getLogger("heald_subagent")


@attrs.frozen
class SubagentConfig:
    """How far delegation may go."""

    max_depth: int = attrs.field(default=3, validator=attrs.validators.ge(0))
    """How many sessions down a child may be; 0 allows none."""
    max_children: int = attrs.field(default=8, validator=attrs.validators.ge(1))
    """How many children of one agent may be at work at once; those that settled do not count."""


@attrs.frozen
class Delegations:
    """Implements `Subagents`; what it knows of children is kept with each parent's agent."""

    scope: Scope
    config: SubagentConfig

    async def run_one_shot(
        self, parent: Agent, delegation: Delegation, *, cancel: CancelToken | None = None
    ) -> ChildResult:
        children = self._children(parent, "a new child")
        token = CancelToken(cancel)
        token.check()
        try:
            with children.slot(self.config.max_children):
                return await self._errand(children, delegation, token)
        finally:
            if cancel is not None:
                cancel.forget(token)

    async def start(self, parent: Agent, delegation: Delegation) -> SessionId:
        children = self._children(parent, "a new child")
        with children.slot(self.config.max_children):
            terms = terms_of(parent, delegation)
            descriptor = continuable(delegation, terms)
            self._check_depth(parent)
            agent = await bear(parent, delegation, descriptor, terms)
            if children.ended:
                await agent.dispose()
                raise SubagentUnauthorized(agent.session.id, parent.session.id)
            children.add(Child(agent, descriptor.label))
        return agent.session.id

    async def send(self, parent: Agent, child: SessionId, text: str) -> None:
        children = self._children(parent, child)
        async with children.resuming:
            known = children.continuable.get(child)
            if known is None:
                await self._send_cold(children, child, text)
                return
        authorize(parent, known.agent.session.header)
        await children.send(known, text, self.config.max_children)

    async def wait(
        self,
        parent: Agent,
        children: Sequence[SessionId] = (),
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - see the contract
        cancel: CancelToken | None = None,
    ) -> Sequence[ChildResult]:
        family = self._children(parent, ", ".join(children) or "any child")
        named = [self._named(family, child) for child in dict.fromkeys(children)]
        chosen = named if children else list(family.continuable.values())
        return await family.wait(chosen, timeout, cancel)

    async def list_children(
        self, parent_id: SessionId, *, cancel: CancelToken | None = None
    ) -> Sequence[SubagentRow]:
        return await Listing(self.scope).children(parent_id, cancel)

    async def list_descendants(
        self, root_id: SessionId, *, cancel: CancelToken | None = None
    ) -> Sequence[SubagentRow]:
        return await Listing(self.scope).descendants(root_id, cancel)

    def _children(self, parent: Agent, child: str) -> Children:
        """Return the children of a live agent; a stale one may do nothing."""
        registry = parent.session.scope.find(agents)
        live = registry is not None and registry.get(parent.session.id) is parent
        children = children_of(parent) if live else None
        if children is None:
            raise SubagentUnauthorized(child, parent.session.id)
        return children

    def _check_depth(self, parent: Agent) -> None:
        depth = parent.session.header.delegation_depth + 1
        check_depth(depth, self.config.max_depth, parent)

    async def _errand(
        self, children: Children, delegation: Delegation, cancel: CancelToken
    ) -> ChildResult:
        parent = children.parent
        terms = terms_of(parent, delegation)
        self._check_depth(parent)
        agent = await bear(parent, delegation, one_shot(delegation), terms)
        children.errands[agent.session.id] = errand = Errand(agent, cancel)
        try:
            if children.ended:
                cancel.cancel("its parent ended")
            return await _result(errand)
        finally:
            await _dispose(agent)
            del children.errands[agent.session.id]

    async def _send_cold(self, children: Children, id: SessionId, text: str) -> None:  # noqa: A002
        parent = children.parent
        with children.slot(self.config.max_children):
            agent, label = await resume(parent, id, max_depth=self.config.max_depth)
            if children.ended:
                await agent.dispose()
            authorize(parent, agent.session.header)
            await children.send_first(Child(agent, label), text)

    def _named(self, children: Children, id: SessionId) -> Child:  # noqa: A002
        child = children.continuable.get(id)
        if child is None:
            store = self.scope.find(session_store)
            if store is not None and (session := store.get(id)) is not None:
                authorize(children.parent, session.header)
            raise SubagentNotLive(id, tuple(children.continuable))
        return child


async def _result(errand: Errand) -> ChildResult:
    """Wait for a one-shot child to settle, or for its caller to give it up."""
    agent, cancel = errand.agent, errand.cancel
    settled = asyncio.ensure_future(agent.settled())
    try:
        with cancel.as_future() as stop:
            first: set[asyncio.Future[Any]] = {settled, stop}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    finally:
        settled.cancel()
    if settled.done():
        return result_of(agent.session.id, settled.result())
    cause = cancel.cause or "cancelled"
    agent.cancel(cause)
    await _dispose(agent)
    outcome = await agent.settled()
    if outcome.turn == 0:
        return ChildResult(id=agent.session.id, outcome="aborted", text=cause)
    return result_of(agent.session.id, outcome)


async def _dispose(agent: Agent) -> None:
    """Dispose of a one-shot child, whose result stands even if its log could not be saved."""
    agent.cancel("nobody waits for it any more")
    try:
        await agent.dispose()
    except HealdError as error:
        _logger.warning("subagent %s did not end cleanly: %s", agent.session.id, error)
