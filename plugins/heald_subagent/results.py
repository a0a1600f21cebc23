"""How a child's work ended, in words."""

from __future__ import annotations

from heald_agent import TurnOutcome
from heald_session import SessionId
from heald_subagent.contracts import ChildResult

LONGEST_NOTICE = 4_000
"""Characters of a closing message that a notice quotes: a parent's log grows by so much at most."""


def result_of(id: SessionId, outcome: TurnOutcome) -> ChildResult:  # noqa: A002 - what it is
    """Make a child's result of the outcome of its last turn."""
    if outcome.outcome == "completed":
        return ChildResult(id=id, outcome="completed", text=outcome.text)
    if outcome.error is not None:
        reason = f"{outcome.error.code}: {outcome.error}"
    else:
        reason = outcome.cause or "no reason is recorded"
    said = f"{reason}\nIts last words: {outcome.text}" if outcome.text else reason
    return ChildResult(id=id, outcome=outcome.outcome, text=said)


def notice(label: str, result: ChildResult) -> str:
    """Make the message by which a parent is told that a child has settled."""
    text = result.text
    if len(text) > LONGEST_NOTICE:
        left = len(text) - LONGEST_NOTICE
        text = f"{text[:LONGEST_NOTICE]}\n[{left} more characters: call wait_agents for all of it]"
    return f"Subagent {label!r} ({result.id}) {result.outcome}:\n\n{text}"
