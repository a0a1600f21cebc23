"""Makes children: their place on a composition, their session, their agent; all or nothing."""

from __future__ import annotations

import uuid
from pathlib import Path

import attrs
import msgspec
from msgspec import UNSET

from heald import Composition, Scope
from heald_agent import Agent, ModelNotConfigured, ModelUnknown, agents, models
from heald_preset import Seat, presets
from heald_session import InboxMessage, NewEvent, Session, session_store
from heald_subagent.contracts import Delegation
from heald_subagent.descriptor import (
    DESCRIPTOR_TYPE,
    DESCRIPTOR_VERSION,
    LARGEST,
    Continuable,
    Descriptor,
    OneShot,
)
from heald_subagent.errors import DelegationInvalid, SubagentLimit
from heald_subagent.rows import ORIGIN

PROVIDER = "spawn"
"""How these children come to be: they start empty."""


@attrs.frozen
class Terms:
    """What a child is given besides its task, the parent's part included."""

    model: str
    denied_tools: frozenset[str]
    persona: str | None


def terms_of(parent: Agent, delegation: Delegation) -> Terms:
    """Settle what a child will have; raises `ModelNotConfigured`."""
    model = delegation.model or parent.model
    if model is None:
        raise ModelNotConfigured
    return Terms(model, parent.denied_tools | delegation.denied_tools, delegation.persona)


def one_shot(delegation: Delegation) -> OneShot:
    """Describe a child that returns a result."""
    label = UNSET if delegation.label is None else delegation.label
    return OneShot(version=DESCRIPTOR_VERSION, provider=PROVIDER, label=label)


def continuable(delegation: Delegation, terms: Terms) -> Continuable:
    """Describe a child that goes on, with all that its resumption needs."""
    if delegation.label is None:
        raise DelegationInvalid("a continuable subagent needs a label; give it a short name")
    adapter, _, model = terms.model.partition(":")
    return Continuable(
        version=DESCRIPTOR_VERSION,
        provider=PROVIDER,
        label=delegation.label,
        agent_provider=adapter,
        model=model,
        persona=UNSET if terms.persona is None else terms.persona,
        denied_tools=sorted(terms.denied_tools),
    )


async def bear(
    parent: Agent, delegation: Delegation, descriptor: Descriptor, terms: Terms
) -> Agent:
    """Make a child that has accepted its task; if that fails there is no child.

    The descriptor and the task are the first bytes of its log, stored before anyone sees it.
    """
    first = (
        NewEvent(DESCRIPTOR_TYPE, _data_of(descriptor)),
        NewEvent("inbox/message", _accepted(delegation.task, parent)),
    )
    seat = await _seat(parent, delegation.preset)
    try:
        composition = seat.composition if seat is not None else None
        _check_model(composition.scope if composition else parent.session.scope, terms.model)
        session = await _create(parent, seat, first)
    except BaseException:
        if seat is not None:
            await seat.release()
        raise
    return await settle_in(session, seat, terms)


async def settle_in(session: Session, seat: Seat | None, terms: Terms) -> Agent:
    """Give a session its place and its agent, or dispose of it."""
    scope = session.scope
    try:
        if seat is not None:
            scope.require(presets).occupy(session, seat)
        return await scope.require(agents).attach(
            session, model=terms.model, denied_tools=terms.denied_tools, persona=terms.persona
        )
    except BaseException:
        await scope.require(session_store).dispose(session)
        if seat is not None:
            await seat.release()
        raise


def cwd_of(session: Session) -> Path | None:
    """Return where a session works, for the presets that hold there."""
    return None if session.header.cwd is None else Path(session.header.cwd)


async def _seat(parent: Agent, preset: str | None) -> Seat | None:
    """Take a place on the named preset, or on the very generation that the parent runs on."""
    scope = parent.session.scope
    if preset is not None:
        return await scope.require(presets).seat(preset, cwd_of(parent.session))
    service = scope.find(presets)
    return None if service is None else await service.seat_beside(parent.session)


async def _create(parent: Agent, seat: Seat | None, first: tuple[NewEvent, ...]) -> Session:
    header = parent.session.header
    composition: Composition | None = None if seat is None else seat.composition
    return await parent.session.scope.require(session_store).create(
        cwd=header.cwd,
        parent_session=header.id,
        delegation_depth=header.delegation_depth + 1,
        origin=ORIGIN,
        agent_preset=header.agent_preset if seat is None else seat.preset,
        first=first,
        composition=composition,
    )


def _check_model(scope: Scope, model: str) -> None:
    """Refuse a model that nobody has while there is nothing to undo."""
    adapters = sorted(c.value.name for c in scope.collect(models))
    adapter, _, name = model.partition(":")
    if not name or adapter not in adapters:
        raise ModelUnknown(model, tuple(adapters))


def _data_of(descriptor: Descriptor) -> object:
    if len(msgspec.json.encode(descriptor)) > LARGEST:
        raise DelegationInvalid(f"label, persona and denied tools are over {LARGEST} bytes")
    return msgspec.to_builtins(descriptor)


def _accepted(task: str, parent: Agent) -> object:
    message = InboxMessage(uuid.uuid4().hex, task, sender=parent.session.id)
    return msgspec.to_builtins(message)


def check_depth(depth: int, allowed: int, parent: Agent) -> None:
    """Refuse a child that would be too many sessions down."""
    if depth > allowed:
        raise SubagentLimit("depth", allowed, (parent.session.id,))
