"""What is going on in a session and in everything below it, as a tree that grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import attrs

from heald import shortened
from heald_agent import AskDecided, AskOpened
from heald_projection import projections
from heald_session import (
    AssistantMessage,
    Event,
    Session,
    SessionId,
    ToolResult,
    ToolStart,
    TurnEnd,
)

_WIDTH = 100
"""How many characters of a text are shown; the log has all of it."""


@attrs.define(eq=False)
class Node:
    """One session of the tree."""

    id: SessionId
    label: str
    depth: int
    doing: str = ""
    open: bool = True
    calls: int = 0
    """How many tool calls it started."""
    children: list[Node] = attrs.field(factory=list)
    arguments: dict[str, str] = attrs.field(factory=dict)
    """The gist of each announced tool call by its id."""


class ProgressTree:
    """Follows one session and its descendants; `tell` hears each piece of news."""

    def __init__(self, root: Session, tell: Callable[[Node, str], None]) -> None:
        self.root = Node(root.id, "agent", 0)
        self._tell = tell
        self._nodes = {root.id: self.root}

    def node(self, session: Session) -> Node | None:
        """Return the place of a session in the tree, if it has one."""
        return self._nodes.get(session.id)

    def opened(self, session: Session) -> None:
        """Add a session if its parent is in the tree."""
        parent = self._nodes.get(session.header.parent_session or SessionId(""))
        if parent is None or session.header.origin is None or session.id in self._nodes:
            return
        node = Node(session.id, _label(session), parent.depth + 1)
        parent.children.append(node)
        self._nodes[session.id] = node
        self._news(node, "started")

    def appended(self, session: Session, event: Event) -> None:
        """Take an event of a session in the tree as news."""
        node = self._nodes.get(session.id)
        if node is not None and (news := _news_of(node, event)) is not None:
            self._news(node, news)

    def streamed(self, session: Session, text: str) -> None:
        """Show the end of an answer that is still arriving; that is no news to be kept."""
        if (node := self._nodes.get(session.id)) is not None:
            node.doing = (node.doing + text)[-_WIDTH:].rpartition("\n")[2]

    def closed(self, session: Session) -> None:
        """Mark a session as gone."""
        if (node := self._nodes.get(session.id)) is not None:
            node.open = False

    def _news(self, node: Node, text: str) -> None:
        node.doing = text
        self._tell(node, text)


class AskDesk(Protocol):
    """Where a person answers what sessions ask."""

    def serves(self, session: Session) -> bool:
        """Say whether the person here answers what a session asks."""
        ...

    def opened(self, session: Session, ask: AskOpened) -> None:
        """Take an ask on, if the session is one of those."""
        ...

    def decided(self, decided: AskDecided) -> None:
        """Let go of an ask, whoever decided it."""
        ...


class ProgressFeed:
    """Hands what the host's sessions do to whoever watches one of them."""

    def __init__(self) -> None:
        self.trees: list[ProgressTree] = []
        self.desks: list[AskDesk] = []

    @contextmanager
    def watch(self, root: Session, tell: Callable[[Node, str], None]) -> Iterator[ProgressTree]:
        """Follow a session and its descendants inside the block."""
        tree = ProgressTree(root, tell)
        self.trees.append(tree)
        try:
            yield tree
        finally:
            self.trees.remove(tree)

    @contextmanager
    def attend(self, desk: AskDesk) -> Iterator[None]:
        """Have a desk answer what its sessions ask inside the block."""
        self.desks.append(desk)
        try:
            yield
        finally:
            self.desks.remove(desk)


def _label(session: Session) -> str:
    registry = session.scope.find(projections)
    values = registry.snapshot(session, ["subagent"]).values if registry is not None else {}
    identity = values.get("subagent") or {}
    return identity.get("label") or session.id


def _news_of(node: Node, event: Event) -> str | None:
    match event.type:
        case "assistant/message":
            message = event.data_as(AssistantMessage)
            for call in message.tool_calls:
                node.arguments[call.id] = _gist(call.arguments)
            return _shorten(message.text) or None
        case "tool/start":
            start = event.data_as(ToolStart)
            node.calls += 1
            return f"{start.name} {node.arguments.pop(start.call_id, '')}".rstrip()
        case "tool/result":
            result = event.data_as(ToolResult)
            return f"{result.name} failed: {_shorten(result.text)}" if result.is_error else None
        case "turn/end":
            end = event.data_as(TurnEnd)
            # Why the run itself did not complete is told at its end.
            return f"{end.outcome}: {end.cause}" if end.cause and node.depth else end.outcome
    return None


def _gist(arguments: object) -> str:
    """Return the first text among a call's arguments: mostly what it is about."""
    values = arguments.values() if isinstance(arguments, dict) else [arguments]
    return _shorten(next((value for value in values if isinstance(value, str)), ""), 60)


def _shorten(text: str, width: int = _WIDTH) -> str:
    line = " ".join(text.strip().partition("\n")[0].split())
    return shortened(line, width)
