"""Mounts headless runs: their progress feed, and the script of the demonstration."""

from __future__ import annotations

from collections.abc import Iterable

from heald import NoConfig, Plugin, RowContext, implements
from heald_agent import (
    Answerer,
    AskDecided,
    AskOpened,
    answerers,
    ask_opened,
    text_streamed,
)
from heald_models_scripted import Script, scripts
from heald_run.hookspecs import progress_feed
from heald_run.progress import ProgressFeed
from heald_run.survey import SURVEY
from heald_session import Event, Session, event_appended, session_closed, session_opened


class RunPlugin(Plugin[NoConfig]):
    """Lets a command line follow a run, and gives the scripted model a survey to play."""

    def __init__(self, context: RowContext[NoConfig]) -> None:
        super().__init__(context)
        self._feed = ProgressFeed()

    @implements(progress_feed)
    def feed(self) -> ProgressFeed:
        """Provide the progress feed."""
        return self._feed

    @implements(scripts)
    def survey(self) -> Iterable[Script]:
        """Contribute `scripted:survey`."""
        return [SURVEY]

    @implements(session_opened)
    def opened(self, session: Session) -> None:
        """Pass a new session on."""
        for tree in self._feed.trees:
            tree.opened(session)

    @implements(event_appended)
    def appended(self, session: Session, event: Event) -> None:
        """Pass an event on."""
        for tree in self._feed.trees:
            tree.appended(session, event)
        if event.type == "ask/decided":
            decided = event.data_as(AskDecided)
            for desk in self._feed.desks:
                desk.decided(decided)

    @implements(text_streamed)
    def streamed(self, session: Session, text: str) -> None:
        """Pass a piece of an answer on."""
        for tree in self._feed.trees:
            tree.streamed(session, text)

    @implements(session_closed)
    async def closed(self, session: Session) -> None:
        """Pass a session's end on."""
        for tree in self._feed.trees:
            tree.closed(session)

    @implements(answerers)
    def attended(self) -> Iterable[Answerer]:
        """Say whether the person at a terminal answers what a session asks."""
        return [lambda session: any(desk.serves(session) for desk in self._feed.desks)]

    @implements(ask_opened)
    def asked(self, session: Session, ask: AskOpened) -> None:
        """Pass an ask on to the person who answers it."""
        for desk in self._feed.desks:
            desk.opened(session, ask)
