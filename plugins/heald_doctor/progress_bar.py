"""Shows on a terminal how far a check or a rebuilding is; rich is imported only for that."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from heald_doctor.check import Progress


@contextmanager
def progress_shown(title: str) -> Iterator[Progress]:
    """Show a bar on standard error inside the block, if that is a terminal."""
    if not sys.stderr.isatty():
        yield _unheard
        return
    from rich import progress as bars  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415

    columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn())
    with bars.Progress(
        *columns,
        bars.TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,  # which may be a file, and is not the bar's
    ) as shown:
        bar = shown.add_task(title, total=None)

        def heard(done: int, total: int | None = None) -> None:
            shown.update(bar, completed=done, total=total)

        yield heard


def _unheard(done: int, total: int | None = None) -> None:
    """Nobody looks."""
