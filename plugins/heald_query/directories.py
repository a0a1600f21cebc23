"""Which working directory is below which, told from their names alone."""

from __future__ import annotations

import posixpath
from collections.abc import Callable


def below(directory: str) -> Callable[[str | None], bool]:
    """Return the condition that a working directory is this one or below it.

    Names are compared component by component, without `.`, `..` and needless slashes. No file
    system is asked: it may be another machine's, so a link is another directory than its target. A
    relative name is below no other, since it does not say where it is.
    """
    top = _plain(directory)
    if top is None:
        return lambda cwd: cwd == directory
    inside = top.rstrip("/") + "/"

    def holds(cwd: str | None) -> bool:
        plain = None if cwd is None else _plain(cwd)
        return plain is not None and f"{plain}/".startswith(inside)

    return holds


def _plain(directory: str) -> str | None:
    if not directory.startswith("/"):
        return None
    return "/" + posixpath.normpath(directory).lstrip("/")
