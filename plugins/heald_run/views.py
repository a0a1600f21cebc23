"""Shows progress on standard error: a live tree on a terminal, else a line for each news."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import click

from heald import Host, counted, visible
from heald_agent import agents
from heald_run import terminal
from heald_run.desk import Desk
from heald_run.hookspecs import progress_feed
from heald_run.progress import Node, ProgressFeed, ProgressTree
from heald_session import Session

_logger = logging.getLogger("heald_run")

if TYPE_CHECKING:
    from rich.live import Live
    from rich.tree import Tree


@asynccontextmanager
async def progress_shown(host: Host, session: Session, *, quiet: bool) -> AsyncIterator[None]:
    """Show what the session and its subagents do inside the block, unless `quiet`.

    At a terminal what they ask is shown too, and the person answers it there.
    """
    feed = host.scope.find(progress_feed)
    if quiet or feed is None:
        yield
    elif sys.stderr.isatty():
        with feed.watch(session, lambda *_: None) as tree, LiveTree(tree).drawn() as drawing:
            if terminal.is_there():
                desk = Desk(tree, host.scope.require(agents), drawing.paused)
                async with _attended(feed, desk):
                    yield
            else:
                yield
    else:
        with feed.watch(session, _print_line):
            yield


@asynccontextmanager
async def _attended(feed: ProgressFeed, desk: Desk) -> AsyncIterator[None]:
    """Answer at the desk inside the block; if the desk fails, nobody is there any more."""

    async def work() -> None:
        with feed.attend(desk):
            await desk.work()

    worker = asyncio.create_task(work(), name="asking at the terminal")
    try:
        yield
    finally:
        worker.cancel()
        (failed,) = await asyncio.gather(worker, return_exceptions=True)
        if isinstance(failed, Exception):
            _logger.error("asking at the terminal failed", exc_info=failed)


def _print_line(node: Node, news: str) -> None:
    click.echo(f"{'  ' * node.depth}{visible(node.label)}: {visible(news)}", err=True)


class LiveTree:
    """Redraws a tree a few times a second; rich is imported only where it is seen."""

    def __init__(self, tree: ProgressTree) -> None:
        self._tree = tree
        self._live: Live | None = None

    @contextmanager
    def drawn(self) -> Iterator[LiveTree]:
        """Draw inside the block; the last state stays on the screen."""
        self._start()
        try:
            yield self
        finally:
            self._stop(erase=False)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the tree off the screen inside the block, which others write to."""
        self._stop(erase=True)
        try:
            yield
        finally:
            self._start()

    def _start(self) -> None:
        from rich.console import Console  # noqa: PLC0415
        from rich.live import Live  # noqa: PLC0415

        self._live = Live(
            console=Console(stderr=True),
            get_renderable=lambda: _branch(self._tree.root),
            refresh_per_second=8,
        )
        self._live.start()

    def _stop(self, *, erase: bool) -> None:
        if self._live is not None:
            self._live.transient = erase
            self._live.stop()
            self._live = None


def _branch(node: Node) -> Tree:
    from rich.text import Text  # noqa: PLC0415
    from rich.tree import Tree  # noqa: PLC0415

    line = Text.assemble(
        (visible(node.label), "bold" if node.open else "dim"),
        (f"  {counted(node.calls, 'call')}  ", "cyan"),
        (visible(node.doing), "" if node.open else "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )
    drawn = Tree(line)
    for child in node.children:
        drawn.children.append(_branch(child))
    return drawn
