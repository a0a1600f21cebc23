"""Brings a child back that is not live here: who may do it, and on what terms it goes on."""

from __future__ import annotations

import attrs
from msgspec import UNSET, ValidationError

from heald_agent import Agent, ModelNotConfigured, agents
from heald_preset import PresetGone, PresetNotFound, Seat, presets
from heald_projection import ProjectionFaulted
from heald_query import session_query
from heald_session import Header, Session, SessionId, session_store
from heald_subagent.birth import Terms, check_depth, cwd_of, settle_in
from heald_subagent.errors import (
    SubagentNotContinuable,
    SubagentQueryUnavailable,
    SubagentUnauthorized,
)
from heald_subagent.identity import (
    KEY,
    ContinuableIdentity,
    Identity,
    OneShotIdentity,
    identity_from,
)
from heald_subagent.rows import ORIGIN

_PRESET = "agentPreset"


@attrs.frozen
class Stored:
    """A child as its log describes it."""

    header: Header
    identity: ContinuableIdentity
    preset: str | None
    """What its log says that it runs on."""


def authorize(parent: Agent, header: Header) -> None:
    """Refuse everyone but the live parent; a row in a listing grants nothing."""
    session = parent.session
    registry = session.scope.find(agents)
    live = registry is not None and registry.get(session.id) is parent and not session.closed
    if not live or header.origin != ORIGIN or header.parent_session != session.id:
        raise SubagentUnauthorized(header.id, session.id)


async def resume(parent: Agent, id: SessionId, *, max_depth: int) -> tuple[Agent, str]:  # noqa: A002
    """Give a child its agent again, on the terms of its descriptor; return its label too.

    Raises `SessionNotFound`, `SubagentUnauthorized`, `SubagentNotContinuable`, `SubagentLimit`, or
    what presets and the session store raise; then it is as it was.
    """
    stored = await _read(parent, id)
    check_depth(stored.header.delegation_depth, max_depth, parent)
    terms = _terms(parent, stored.identity)
    agent = parent.session.scope.require(agents).get(id)
    if agent is None:
        seat = await _seat(parent, stored)
        session = await _load(parent, stored.header, seat)
        agent = await settle_in(session, seat, terms)
    return agent, stored.identity.label


async def _read(parent: Agent, id: SessionId) -> Stored:  # noqa: A002 - what it is
    query = parent.session.scope.find(session_query)
    if query is None:
        raise SubagentQueryUnavailable
    try:
        async with query.observe_session(id, [KEY, _PRESET]) as seen:
            authorize(parent, seen.header)
            identity = identity_from(seen.state(KEY), seen.inherited_event_count)
            preset = seen.projections.values.get(_PRESET)
            return Stored(seen.header, _continuable(id, identity), preset)
    except (ProjectionFaulted, ValidationError, KeyError) as error:
        raise SubagentNotContinuable(id, "its descriptor cannot be read") from error


def _continuable(id: SessionId, identity: Identity | None) -> ContinuableIdentity:  # noqa: A002
    if identity is None:
        raise SubagentNotContinuable(id, "it has no descriptor of its own")
    if isinstance(identity, OneShotIdentity):
        raise SubagentNotContinuable(id, "it is a one-shot subagent")
    return identity


def _terms(parent: Agent, identity: ContinuableIdentity) -> Terms:
    """Take what the descriptor keeps; what the parent may not do now the child may not either."""
    named = identity.agent_provider is not UNSET and identity.model is not UNSET
    model = f"{identity.agent_provider}:{identity.model}" if named else parent.model
    if model is None:
        raise ModelNotConfigured
    denied = parent.denied_tools | frozenset(identity.denied_tools)
    return Terms(model, denied, None if identity.persona is UNSET else identity.persona)


async def _seat(parent: Agent, stored: Stored) -> Seat | None:
    """Take a place beside the parent if the child ran on its preset, else on the child's own."""
    service = parent.session.scope.find(presets)
    if service is None or stored.preset is None:
        return None
    beside = await service.seat_beside(parent.session)
    if beside is not None and beside.preset == stored.preset:
        return beside
    if beside is not None:
        await beside.release()
    try:
        return await service.seat(stored.preset, cwd_of(parent.session))
    except PresetNotFound as error:
        raise PresetGone(stored.header.id, stored.preset, error.known) from error


async def _load(parent: Agent, header: Header, seat: Seat | None) -> Session:
    """Make the session live, and look once more at who asks and at whose child it is."""
    store = parent.session.scope.require(session_store)
    try:
        composition = None if seat is None else seat.composition
        session = await store.resume(header.id, composition=composition)
        if not _still_ours(parent, session, header):
            await store.dispose(session)
            raise SubagentUnauthorized(header.id, parent.session.id)  # noqa: TRY301
    except BaseException:
        if seat is not None:
            await seat.release()
        raise
    return session


def _still_ours(parent: Agent, session: Session, header: Header) -> bool:
    try:
        authorize(parent, session.header)
    except SubagentUnauthorized:
        return False
    return session.header.log_id == header.log_id
