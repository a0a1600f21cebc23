"""Where the asks of a run are put to the person at the terminal, one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import attrs
import click

from heald import HealdError, visible
from heald_agent import Agents, AskDecided, AskOpened
from heald_run.answering import answer_of
from heald_run.progress import ProgressTree
from heald_run.terminal import forget_typed, read_line
from heald_session import Session, SessionId

BY = "terminal"
"""What the log says about who answered."""

_HINTS = {
    "question": "Answer in words{number}; an empty line declines: ",
    "approval": "Approve? Write yes, no, or what should be different: ",
}


@attrs.frozen(eq=False)
class _Put:
    label: str
    session: SessionId
    ask: AskOpened
    decided: asyncio.Future[AskDecided] = attrs.field(
        factory=lambda: asyncio.get_running_loop().create_future()
    )


class Desk:
    """Puts what a tree of sessions asks to the person, and hands the answers in."""

    def __init__(
        self,
        tree: ProgressTree,
        agents: Agents,
        undisturbed: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._tree = tree
        self._agents = agents
        self._undisturbed = undisturbed
        self._open: dict[str, _Put] = {}
        self._news = asyncio.Event()

    def serves(self, session: Session) -> bool:
        """Say whether the person here answers what a session asks."""
        return self._tree.node(session) is not None

    def opened(self, session: Session, ask: AskOpened) -> None:
        """Take an ask on."""
        if (node := self._tree.node(session)) is not None:
            self._open[ask.id] = _Put(node.label, session.id, ask)
            self._news.set()

    def decided(self, decided: AskDecided) -> None:
        """Let go of an ask, whoever decided it."""
        if (put := self._open.pop(decided.ask, None)) is not None:
            put.decided.set_result(decided)

    async def work(self) -> None:
        """Put one ask after another, until cancelled."""
        while True:
            await self._news.wait()
            while self._open:
                await self._put(next(iter(self._open.values())))
            self._news.clear()

    async def _put(self, put: _Put) -> None:
        with self._undisturbed():
            forget_typed()
            click.echo("\n".join(_shown(put)), err=True, nl=False)
            line = await read_line(put.decided)
            if line is None:
                click.echo(f"\n{_told(put.decided.result())}", err=True)
                return
            outcome, text = answer_of(put.ask, line)
            try:
                await self._agents.answer(put.session, put.ask.id, outcome, text, by=BY)
            except HealdError as error:
                self._open.pop(put.ask.id, None)
                click.echo(f"heald: {error.code}: {error}", err=True)


def _shown(put: _Put) -> Iterator[str]:
    what = "asks" if put.ask.kind == "question" else "asks for approval"
    yield f"{visible(put.label)} {what}:"
    yield from (visible(line.expandtabs()) for line in put.ask.text.splitlines())
    options = put.ask.options
    yield from (f"  {n}. {visible(option)}" for n, option in enumerate(options, 1))
    yield _HINTS[put.ask.kind].format(number=" or with a number" if options else "")


def _told(decided: AskDecided) -> str:
    why = f" ({visible(decided.reason)})" if decided.reason else ""
    return f"No answer is wanted any more: {decided.outcome} by {visible(decided.by)}{why}."
