"""What turns mean to delegation: when parents are told, and when children are cancelled."""

from __future__ import annotations

from heald_agent import Agent, agents
from heald_session import Event, Session, SessionId, TurnEnd
from heald_subagent.children import Children, children_of
from heald_subagent.rows import ORIGIN


def turn_started(session: Session) -> None:
    """Note that a parent is at work, and that a child is again."""
    if (children := _children(session, session.id)) is not None:
        children.turn_started()
    if (family := _family(session)) is not None and session.id in family.continuable:
        family.begin(family.continuable[session.id])


def turn_ended(session: Session, event: Event) -> None:
    """Tell a parent what it did not wait for; cancel the children of one that was cancelled."""
    children = _children(session, session.id)
    if children is None:
        return
    end = event.data_as(TurnEnd)
    if end.outcome == "aborted":
        children.turn_aborted(f"its parent was cancelled: {end.cause}")
    else:
        children.turn_ended()


def child_closed(session: Session) -> None:
    """Let a parent's agent go of a child that somebody disposed of."""
    if (family := _family(session)) is not None:
        family.closed(session.id, "it was disposed of")


def _family(session: Session) -> Children | None:
    """Return the children that a session is one of, if its parent is live."""
    parent = session.header.parent_session
    return _children(session, parent) if session.header.origin == ORIGIN and parent else None


def _children(session: Session, id: SessionId) -> Children | None:  # noqa: A002 - what it is
    registry = session.scope.find(agents)
    agent: Agent | None = None if registry is None else registry.get(id)
    return None if agent is None else children_of(agent)
