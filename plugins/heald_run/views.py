"""Shows progress on standard error: a live tree on a terminal, else a line for each news."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from heald import Host
from heald_run.hookspecs import progress_feed
from heald_run.progress import Node, ProgressTree
from heald_run.report import counted
from heald_session import Session


@contextmanager
def progress_shown(host: Host, session: Session, *, quiet: bool) -> Iterator[None]:
    """Show what the session and its subagents do inside the block, unless `quiet`."""
    feed = host.scope.find(progress_feed)
    if quiet or feed is None:
        yield
    elif sys.stderr.isatty():
        with feed.watch(session, lambda *_: None) as tree, _live(tree):
            yield
    else:
        with feed.watch(session, _print_line):
            yield


def _print_line(node: Node, news: str) -> None:
    click.echo(f"{'  ' * node.depth}{node.label}: {news}", err=True)


@contextmanager
def _live(tree: ProgressTree) -> Iterator[None]:
    """Redraw the tree a few times a second; rich is imported only where it is seen."""
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415
    from rich.tree import Tree  # noqa: PLC0415

    def branch(node: Node) -> Tree:
        line = Text.assemble(
            (node.label, "bold" if node.open else "dim"),
            (f"  {counted(node.calls, 'call')}  ", "cyan"),
            (node.doing, "" if node.open else "dim"),
            no_wrap=True,
            overflow="ellipsis",
        )
        drawn = Tree(line)
        for child in node.children:
            drawn.children.append(branch(child))
        return drawn

    console = Console(stderr=True)
    with Live(console=console, get_renderable=lambda: branch(tree.root), refresh_per_second=8):
        yield
