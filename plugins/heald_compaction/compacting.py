"""Compacts a session: asks its model for a summary, and puts that in the place of what was said."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs

from heald import HealdError
from heald_agent import Agent
from heald_compaction.errors import CompactionNotNeeded
from heald_compaction.events import (
    COMPACTION_FAILED,
    COMPACTION_STARTED,
    CompactionFailed,
    CompactionStarted,
)
from heald_compaction.selection import length, older
from heald_compaction.summary import asked, text_of
from heald_session import AssistantMessage, HistorySummary, Session, Shown, Surface, Usage

_logger = logging.getLogger("heald_compaction")

FEWEST = 2
"""A single message is nothing that a summary would be made of; least of all a summary."""


@attrs.frozen
class Compacted:
    """What came of it."""

    messages: int
    """How many were replaced."""
    before: int
    """How many characters they had."""
    after: int
    """How many the summary has."""
    kept: int
    """How many messages stay as they are."""


async def compact(agent: Agent, prompt: str, *, keep: int) -> Compacted:
    """Replace all but the newest messages, which may have `keep` characters; durable on return.

    Whatever keeps the summary out of the log, the model sees what it saw before. Raises
    `CompactionNotNeeded`, `SummaryUnusable`, or what `Agent.aside` and `Aside.ask` raise.
    """
    session = agent.session
    async with agent.aside() as aside:
        shown = session.surface()
        replaced = older(shown, keep)
        if len(replaced) < FEWEST:
            raise CompactionNotNeeded(session.id, keep)
        first, last = replaced[0].seq, replaced[-1].seq
        started = CompactionStarted(uuid.uuid4().hex, aside.model, first, last, prompt)
        session.append(COMPACTION_STARTED.name, started)
        with _told(session, started) as told:
            told.answer = await aside.ask(asked(replaced, started))
            text = text_of(told.answer, replaced, aside.model)
            _replace(session, replaced, HistorySummary(started.id, text, told.usage))
        await session.flush()
    before = sum(length(place.message) for place in replaced)
    return Compacted(len(replaced), before, len(text), len(shown) - len(replaced))


def _replace(session: Session, replaced: Sequence[Shown], summary: HistorySummary) -> None:
    session.append(
        "history/summary",
        summary,
        surface=Surface("replace", replaced[0].seq, replaced[-1].seq),
        sources=tuple(place.seq for place in replaced),
    )


@attrs.define
class _Told:
    """The answer, once there is one."""

    answer: AssistantMessage | None = None

    @property
    def usage(self) -> Usage | None:
        return self.answer.usage if self.answer is not None else None


@contextmanager
def _told(session: Session, started: CompactionStarted) -> Iterator[_Told]:
    """Log what goes wrong inside the block, and what the request came to all the same."""
    told = _Told()
    try:
        yield told
    except BaseException as error:
        reason = str(error) if isinstance(error, HealdError) else type(error).__name__
        _fail(session, CompactionFailed(started.id, reason, told.usage))
        raise


def _fail(session: Session, failed: CompactionFailed) -> None:
    try:
        session.append(COMPACTION_FAILED.name, failed)
    except HealdError as error:  # what went wrong first is what the caller must hear of
        _logger.warning(
            "compaction of %s failed, and the log has no word of it: %s", session.id, error
        )
