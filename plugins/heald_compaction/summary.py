"""What the model is asked for, and what becomes of its answer."""

from __future__ import annotations

from collections.abc import Sequence

from heald_compaction.errors import SummaryUnusable
from heald_compaction.events import CompactionStarted
from heald_compaction.selection import length
from heald_session import AssistantMessage, Message, Shown, UserMessage, balanced

PROMPT = """\
Everything above is about to be replaced by a summary, and you will go on from that summary alone. \
Write it now. Do not go on with the work, answer nothing, and call no tool.

Say, as far as there is any:
- what the person wants, with every wish and limit they stated, in their own words where the words \
matter;
- what was decided, and why;
- what was done and found out, with exact names, paths, commands and values;
- what was tried and did not work;
- where the work stands, and what comes next.

If an earlier summary is above, take from it what still matters and say it anew. Leave out what \
can be read again where it is kept. Write the summary and nothing else."""

WANTED = "Above all, keep this: "
"""Stands before what the person wants to have kept."""

HEADING = """\
To save room, what was said before this is replaced by a summary of it:
"""
"""Stands before a summary, so that the model knows what it is."""


def prompt(base: str, wanted: str) -> str:
    """Return what the model is asked, with what the person wants to have kept."""
    return f"{base}\n\n{WANTED}{wanted}" if wanted else base


def asked(replaced: Sequence[Shown], started: CompactionStarted) -> Sequence[Message]:
    """Return the messages of the request: what is to be replaced, and the prompt."""
    said = [place.message for place in replaced if place.message is not None]
    return (*balanced(said), UserMessage(started.id, started.prompt))


def text_of(answer: AssistantMessage, replaced: Sequence[Shown], model: str) -> str:
    """Return what the model will read in the place of what was said.

    Raises `SummaryUnusable` for an answer that says nothing, or not all, or saves nothing.
    """
    said = answer.text.strip()
    if not said:
        why = "it called a tool instead" if answer.tool_calls else "its answer is empty"
        raise SummaryUnusable(model, why)
    if answer.finish == "length":
        raise SummaryUnusable(model, "its answer was cut off at its longest")
    text = f"{HEADING}\n{said}"
    if len(text) >= sum(length(place.message) for place in replaced):
        raise SummaryUnusable(model, "its answer is no shorter than what it would replace")
    return text
